"""likewise expect: which expectations hold, and how broken ones are printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.errors import BadInput
from search.evaluation.expectations import read_expectations


def test_what_holds_is_said_in_one_line(likewise: Callable[..., Any], index: Path, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text(
        "- question: bread\n  top 1: bread\n  above: [bread, cake, moon]\n  not in top 2: moon\n"
        "- question: flour oven\n  top 1: cake\n  not in top 3: bread\n  where: year = 2021\n"
    )
    said = likewise("expect", index, file)
    assert (said.code, said.out) == (0, "all 5 expectations hold\n")


def test_uris_that_yaml_would_read_as_numbers_are_text(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    records = lines({"id": "010", "text": "bread bread oven"}, {"id": "8", "text": "moon tide star"})
    likewise("index", tmp_path / "x.index", "-", stdin=records)
    file = tmp_path / "e.yaml"
    file.write_text("- question: bread\n  top 1: 010\n  not in top 1: 8\n")
    assert likewise("expect", tmp_path / "x.index", file).code == 0
    file.write_text("- question: bread\n  not in top 1: 010\n")
    assert likewise("expect", tmp_path / "x.index", file).code == 1
    file.write_text("- question: bread\n  top 1:\n")
    assert "needs a uri" in likewise("expect", tmp_path / "x.index", file).err


def test_what_is_broken_is_shown_with_the_ranks_it_got(
    likewise: Callable[..., Any], index: Path, tmp_path: Path
) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("- question: bread\n  top 2: [bread, moon]\n  above: [cake, bread]\n  not in top 1: bread\n")
    said = likewise("expect", index, file, "--json")
    assert said.code == 1
    assert said.json["expectations"] == 3
    assert [each["expected"] for each in said.json["broken"]] == [
        "top 2: bread, moon",
        "above: cake, bread",
        "not in top 1: bread",
    ]
    assert said.json["broken"][0]["ranks"] == {"bread": 1, "moon": 3}
    said = likewise("expect", index, file)
    assert said.code == 1
    assert "  - top 2: bread, moon\n  + bread at 1\n  + moon at 3\n" in said.out
    assert said.out.endswith("3 of 3 expectations broken\n")


def test_what_cannot_be_tested_is_said(likewise: Callable[..., Any], index: Path, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("- question: bread\n  top 3: moon\n  top 3: bread\n")
    said = likewise("expect", index, file)
    assert said.code == 2
    assert f"{file}:1: 'top 3' comes twice" in said.err
    file.write_text("- question: bread\n  not in top 3: typo\n")
    said = likewise("expect", index, file)
    assert said.code == 0
    assert "question 1: typo is not a document of the index" in said.err
    file.write_text("- question: bread\n  top 3: bread\n- question: moon\n  top 1: moon\n  where: yaer = 1\n")
    said = likewise("expect", index, file)
    assert said.code == 2
    assert 'question 2: filter: no document has a field "yaer"' in said.err


def test_what_the_index_does_not_have_is_not_found(likewise: Callable[..., Any], index: Path, tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("- question: bread\n  top 5: nothing\n  above: [bread, nothing]\n")
    said = likewise("expect", index, tmp_path / "e.yaml", "--json")
    assert [each["expected"] for each in said.json["broken"]] == ["top 5: nothing"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a list of questions"),
        ("- top 1: a\n", "question 1: has no text"),
        ("- question: a\n", "expects nothing"),
        ("- question: a\n  top: b\n", "'top' is not one of"),
        ("- question: a\n  top 0: b\n", "'top 0' is not one of"),
        ("- question: a\n  above: b\n", "two or more"),
        ("- question: a\n  top 1: {b: c}\n", "needs a uri"),
        ("- question: a\n  top 1: b\n  mode: fuzzy\n", "mode 'fuzzy'"),
        ("- question: [\n", "cannot be read"),
    ],
)
def test_a_file_that_means_nothing_says_where(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "e.yaml").write_text(text)
    with pytest.raises(BadInput, match=problem) as error:
        read_expectations(tmp_path / "e.yaml")
    assert "e.yaml" in str(error.value)
    assert "\n" not in str(error.value)
