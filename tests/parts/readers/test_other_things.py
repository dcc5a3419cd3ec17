"""Tables and JSON that are no documents: left out in a folder, failed where they are named; and open quotes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.sources import Entry

Collect = Callable[..., list[Entry]]

NEVER_CLOSED = 'a quote that begins here is never closed, and takes in all that follows: close it, or write it as ""'


def states_and_reasons(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(entry.state, entry.reason.text()) for entry in entries]


@pytest.mark.parametrize(
    ("name", "content"),
    [("m.jsonl", '{"step": 1}\n\n{"step": 2, "text": null}\n{"body": null}\n'), ("m.ndjson", '\ufeff{"step": 1}\n')],
)
def test_lines_without_a_text_are_skipped_as_a_whole_in_a_folder_and_one_by_one_where_they_were_named(
    tmp_path: Path, collect: Collect, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    (entry,) = collect(tmp_path)
    assert (entry.uri, entry.state) == (str(tmp_path / name), "skipped")
    assert entry.reason.text() == "holds no record with a text: name its member with --text-field"
    assert [entry.state for entry in collect(tmp_path / name)] == ["skipped"] * content.count("{")


@pytest.mark.parametrize(
    ("name", "content", "states"),
    [
        ("m.jsonl", '{"step": 1}\n{"body": "a text"}\n', ["skipped", "read"]),
        ("m.jsonl", '{"step": 1}\n{damaged\n', ["skipped", "failed"]),
        ("m.jsonl", '{"step": 1}\n[]\n', ["skipped", "failed"]),
        ("m.jsonl", "\n", ["skipped"]),
    ],
)
def test_what_may_have_been_a_document_fails_in_a_folder_too(
    tmp_path: Path, collect: Collect, name: str, content: str, states: list[str]
) -> None:
    (tmp_path / name).write_text(content)
    assert [entry.state for entry in collect(tmp_path)] == states


def test_a_misspelt_text_field_is_a_failure_in_a_folder_that_holds_texts(tmp_path: Path, collect: Collect) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n')
    (tmp_path / "b.csv").write_text("text\none\n")
    (tmp_path / "c.csv").write_text("step\n1\n")
    (tmp_path / "d.jsonl").write_text('{"step": 1}\n')
    states = {Path(entry.file).name: entry.state for entry in collect(tmp_path, text_field="tetx")}
    assert states == {"a.jsonl": "failed", "b.csv": "failed", "c.csv": "skipped", "d.jsonl": "skipped"}


def test_json_whose_text_member_is_no_text_is_a_document_of_its_own(tmp_path: Path, collect: Collect) -> None:
    page = '{"type": "doc", "content": [{"type": "paragraph"}]}'
    (tmp_path / "page.json").write_text(page)
    (entry,) = collect(tmp_path)
    assert entry.document is not None
    assert (entry.uri, entry.document.text) == (str(tmp_path / "page.json"), page)
    (tmp_path / "page.json").write_text('[{"id": "a", "content": "one"}, {"id": "b", "content": [1]}]')
    good, bad = collect(tmp_path)
    assert (good.uri, good.state, bad.uri, bad.state) == ("a", "read", "b", "failed")


def test_pruning_goes_on_beside_other_things(tmp_path: Path, likewise: Callable[..., Any]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "page.json").write_text('{"type": "doc", "content": []}')
    (folder / "metrics.jsonl").write_text('{"loss": 0.5}\n')
    (folder / "frame.csv").write_text(",x\n0,1\n")
    for name in "abc":
        (folder / f"{name}.txt").write_text(name)
    likewise("index", tmp_path / "x.index", folder, "--json").reported(0, indexed=5, skipped=1, failed=0)
    (folder / "a.txt").unlink()
    likewise("index", tmp_path / "x.index", folder, "--prune", "--json").reported(0, pruned=1)


def test_a_null_member_gives_way_to_the_next_usual_one(tmp_path: Path, collect: Collect) -> None:
    (tmp_path / "r.jsonl").write_text('{"_id": null, "id": "a", "text": null, "body": "one", "n": null}\n')
    (entry,) = collect(tmp_path / "r.jsonl")
    assert entry.document is not None
    assert (entry.uri, entry.document.text, dict(entry.document.metadata)) == ("a", "one", {"n": None})
    (entry,) = collect(tmp_path / "r.jsonl", text_field="text")
    assert states_and_reasons([entry]) == [("skipped", 'line 1: its text "text" is null')]


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_quote_that_is_never_closed_is_said_at_its_row(tmp_path: Path, collect: Collect, end: str) -> None:
    file = tmp_path / "r.csv"
    file.write_text('id,text\n0,zero\n1,"an unclosed quote\n2,second\n3,third' + end)
    assert states_and_reasons(collect(file)) == [("read", ""), ("failed", f"line 3: {NEVER_CLOSED}")]
    file.write_text('id,"text\n1,one' + end)
    assert states_and_reasons(collect(file)) == [("failed", f"line 1: {NEVER_CLOSED}")]
    file.write_text('id,text\n0,"two\nlines"\n1,"closed at the end"' + end)
    assert states_and_reasons(collect(file)) == [("read", ""), ("read", "")]


def test_an_open_quote_in_the_first_row_below_the_header_is_said(tmp_path: Path, collect: Collect) -> None:
    file = tmp_path / "r.csv"
    file.write_text('id,text\n0,"zero\n1,one\n2,two\n')
    assert states_and_reasons(collect(tmp_path)) == [("failed", f"line 2: {NEVER_CLOSED}")]
    file.write_text("id,text\n")
    assert states_and_reasons(collect(tmp_path)) == [("skipped", "holds no rows below its header")]


def test_a_table_that_is_cut_off_keeps_its_documents(tmp_path: Path, likewise: Callable[..., Any]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "r.csv").write_text('id,text\n0,"zero"\n1,one\n')
    for name in "abc":
        (folder / f"{name}.txt").write_text(name)
    assert likewise("index", tmp_path / "x.index", folder, "--json").json["indexed"] == 5
    (folder / "r.csv").write_text('id,text\n0,"zero\n1,one\n')
    likewise("index", tmp_path / "x.index", folder, "--prune", "--json").reported(1, failed=1, pruned=0)
