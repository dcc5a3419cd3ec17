"""Reading files of judged pairs in all their forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from indexer.errors import BadInput
from likewise.evaluation.sts import read_sts, spearman

FORMS = {
    "tabs.tsv": 'score\tsentence1\tsentence2\n2.5\tA "girl.\tB, b\n5\tC\tD\n',
    "tabs.csv": 'score\tsentence1\tsentence2\r\n2.5\tA "girl.\tB, b\r\n5\tC\tD\r\n',
    "named.csv": 'sentence1,sentence2,similarity_score\n"A ""girl.","B, b",2.5\nC,D,5\n',
    "lines.jsonl": '{"sentence1": "A \\"girl.", "sentence2": "B, b", "score": 2.5}\n\n'
    '{"sentence1": "C", "sentence2": "D", "score": 5}\n',
    "labels.jsonl": '{"text1": "A \\"girl.", "text2": "B, b", "label": "2.5"}\n'
    '{"text1": "C", "text2": "D", "label": 5}',
}


@pytest.mark.parametrize("name", FORMS)
def test_a_file_in_any_form(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FORMS[name].encode())
    found = read_sts(tmp_path / name)
    assert found.name == name.partition(".")[0]
    assert (found.first, found.second) == (('A "girl.', "C"), ("B, b", "D"))
    assert found.scores.tolist() == [2.5, 5]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        (
            "1\ta\tb\n2\tc\td\n",
            r"has no score, sentence1 and sentence2 among its fields \(1, a, b\): add a header",
        ),
        ("score\tfirst\tother\n1\ta\tb\n", "has no score, sentence1 and sentence2"),
        ("score\tsentence1\tsentence2\n1\ta\n", ":2: must be a score and two sentences"),
        ("score\tsentence1\tsentence2\nhigh\ta\tb\n", ":2: must be a score and two sentences"),
        ("score\tsentence1\tsentence2\n1\ta\t \n", ":2: a sentence is empty"),
        ("score\tsentence1\tsentence2\n1\ta\tb\n1\tc\td\n", "two pairs of different scores"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "pairs.tsv").write_text(text)
    with pytest.raises(BadInput, match=complaint):
        read_sts(tmp_path / "pairs.tsv")


def test_spearman_is_of_ranks_alone() -> None:
    assert spearman(np.array([0.1, 0.9, 0.95]), np.array([1.0, 2.0, 5.0])) == pytest.approx(100)
    assert spearman(np.array([0.1, 0.9, 0.5]), np.array([1.0, 2.0, 3.0])) == pytest.approx(50)
    assert spearman(np.ones(3), np.array([1.0, 2.0, 3.0])) == 0
