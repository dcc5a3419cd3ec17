"""Tuning: a words bias is learned, kept only where held-out questions gain, and used afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import store_of

from indexer import Index
from indexer.errors import BadInput
from indexer.stores.port import Candidates
from likewise.evaluation.measures import Qrels
from likewise.evaluation.tune import WORDS_BIASES, tune
from search.ranking.fusion import words_bias
from search.ranking.modes import ScoredCandidates


def candidates(random: np.random.Generator, answer: int) -> ScoredCandidates:
    """Return ten candidates; the answer is first by words and at a random rank by meaning."""
    words = random.uniform(0, 5, 10).astype(np.float32)
    words[answer] = 8
    cosines = random.uniform(0, 1, 10).astype(np.float32)
    found = Candidates(
        passages=np.arange(10),
        documents=np.arange(10),
        cosines=cosines,
        best_means=cosines.astype(np.float64),
        words=words,
        terms=3,
        matched=10,
        complete=True,
    )
    return ScoredCandidates(found, z_scores=random.normal(2, 1, 10))


def test_where_words_hold_the_answer_the_lean_goes_to_them() -> None:
    random = np.random.default_rng(4)
    uris = [f"d{number}" for number in range(10)]
    answers = random.integers(0, 10, 40).tolist()
    found = [(f"q{n}", candidates(random, answer), uris) for n, answer in enumerate(answers)]
    qrels = Qrels({f"q{n}": {f"d{answer}": 1} for n, answer in enumerate(answers)})
    tuned = tune(found, qrels, before=-3.0)
    assert (tuned.questions, tuned.gains) == (40, True)
    assert tuned.words_bias > 0
    assert tuned.score_held_out == pytest.approx(1)
    assert tuned.score_before < 0.8
    again = tune(found, qrels, before=WORDS_BIASES[-1])
    assert (again.words_bias, again.gains) == (WORDS_BIASES[-1], False)
    with pytest.raises(BadInput, match="9 judged questions"):
        tune(found[:9], qrels, 0.0)


@pytest.mark.slow
def test_the_shell_keeps_what_it_learnt(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    folder = tmp_path / "x.index"
    names = [f"kle{chr(97 + n)}" for n in range(20)]
    records = lines(*({"id": name, "text": f"{name} common words all over {n % 3}"} for n, name in enumerate(names)))
    likewise("index", folder, "-", stdin=records)
    (tmp_path / "q.jsonl").write_text(lines(*({"_id": name, "text": f"{name} all"} for name in names)))
    (tmp_path / "r.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"{n}\t{n}\t1\n" for n in names))
    arguments = ["tune", folder, "--queries", tmp_path / "q.jsonl", "--qrels", tmp_path / "r.tsv"]
    said = likewise(*arguments, "--json").succeeded()
    with Index.open(folder) as index:
        assert words_bias(index.settings) == said.json["lean"]
    assert said.json["ndcg_held_out"] <= 1
    assert said.json["questions"] == 20
    assert likewise(*arguments, "--reset").code == 0
    assert likewise(*arguments, "--reset").code == 0
    with Index.open(folder) as index, store_of(index).writer() as writer:
        writer.change(lambda settings: replace(settings, words_bias=3.5))
    (tmp_path / "q.jsonl").write_text(lines(*({"_id": name, "text": f"{name} all " * 30} for name in names)))
    said = likewise(*arguments, "--json").succeeded()
    assert len(said.json["notes"]) == 20
    assert [note for note in said.json["notes"] if not ("more than the model reads" in note and note in said.err)] == []
    with Index.open(folder) as index, store_of(index).writer() as writer:
        writer.change(lambda settings: replace(settings, words_bias=3.5))
    assert "\nhybrid     words bias +3.50, learned by likewise tune\n" in likewise("info", folder).out
    few = [*arguments[:-1], tmp_path / "few.tsv"]
    (tmp_path / "few.tsv").write_text(f"query-id\tcorpus-id\tscore\n{names[0]}\t{names[0]}\t1\n")
    assert likewise(*few, "--reset").code == 2
    with Index.open(folder) as index:
        assert words_bias(index.settings) == 3.5  # what failed has forgotten nothing
        before = words_bias(replace(index.settings, words_bias=None))
    said = likewise(*arguments, "--reset", "--json")
    with Index.open(folder) as index:
        assert (said.json["before"], words_bias(index.settings)) == (before, said.json["lean"])
