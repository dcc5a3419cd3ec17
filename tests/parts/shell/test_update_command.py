"""likewise update: the recorded sources, read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parts.shell.test_default_index import enter

from indexer import Index

MESSAGE = "From ann Mon Jan  1 00:00:00 2024\nMessage-ID: <{0}@here>\nSubject: {0}\n\nthe message {0}\n\n"


@pytest.fixture
def folder(tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two notes and an index of its own elsewhere; the user has no configuration."""
    return enter(tmp_path, likewise, monkeypatch)


def test_a_source_is_read_again_with_its_own_options(likewise: Callable[..., Any], folder: Path) -> None:
    (folder / "data.jsonl").write_text('{"name": "a", "words": "a comet"}\n')
    likewise("index", "notes", "--glob", "m*.txt")
    likewise("index", ".likewise", "data.jsonl", "--id-field", "name", "--text-field", "words")
    likewise("index", ".likewise", "-", stdin='{"id": "s", "text": "a sun"}')
    (folder / "notes" / "new.txt").write_text("not read, because of the pattern")
    (folder / "notes" / "more.txt").write_text("read")
    (folder / "data.jsonl").write_text('{"name": "a", "words": "a comet"}\n{"name": "b", "words": "a planet"}\n')
    counts = likewise("update", "--json").json
    assert (counts["indexed"], counts["unchanged"]) == (2, 2)
    with Index.open(folder / ".likewise") as index:
        assert {"a", "b", "s", str(folder / "notes" / "more.txt")} < {document.uri for document in index}
    assert likewise("status", "--json").json["sources"] == [str(folder / "notes"), str(folder / "data.jsonl")]


def test_tables_with_different_columns_are_indexed_in_two_runs(likewise: Callable[..., Any], folder: Path) -> None:
    (folder / "reviews").mkdir()
    (folder / "reviews" / "a.csv").write_text("nr,stars,review\nr1,5,Lovely place\n")
    (folder / "towns.csv").write_text("id,river,about\nt1,Rhine,A town of bells\n")
    likewise("index", ".likewise", "reviews/*.csv", "--id-field", "nr", "--text-field", "review")
    likewise("index", ".likewise", "towns.csv", "--text-field", "about")

    def texts() -> dict[str, str]:
        with Index.open(folder / ".likewise") as index:
            return {document.uri: document.text for document in index}

    assert texts() == {"r1": "Lovely place", "t1": "A town of bells"}
    (folder / "reviews" / "a.csv").write_text("nr,stars,review\nr1,2,Too loud\nr2,4,Quiet\n")
    (folder / "towns.csv").write_text("id,river,about\nt1,Rhine,A town of ships\nt2,Elbe,A town of cranes\n")
    counts = likewise("update", "--json").json
    assert (counts["indexed"], counts["updated"], counts["unchanged"]) == (4, 0, 0)
    assert texts() == {"r1": "Too loud", "r2": "Quiet", "t1": "A town of ships", "t2": "A town of cranes"}


def test_a_dry_run_prints_what_pruning_removes_and_writes_nothing(
    likewise: Callable[..., Any], folder: Path, encoder: Any
) -> None:
    notes = folder / "notes"
    (notes / "things.csv").write_text("id,text\na,a lamp of brass\nb,a jacket of wool\nc,a chair of oak\n")
    (notes / "mail.mbox").write_text("".join(MESSAGE.format(name) for name in ("one", "two")))
    (notes / "kept.jsonl").write_text('{"id": "k", "text": "kept"}\n')
    (notes / "left.txt").write_text("left out later")
    likewise("index", "notes")
    (notes / "things.csv").write_text("id,text\na,a lamp of brass\nd,a table\n")
    (notes / "mail.mbox").write_text(MESSAGE.format("two"))
    (notes / "kept.jsonl").write_text("not json\n")
    (notes / "bread.txt").rename(notes / "renamed.txt")
    (notes / ".likewiseignore").write_text("left.txt\n")
    before, embedded = (folder / ".likewise" / "catalog.db").read_bytes(), len(encoder.seen)
    gone = [f"{notes}/bread.txt", "b", "c", f"{notes}/mail.mbox#one@here"]
    said = likewise("update", "--prune", "--dry-run", "--json").succeeded()
    assert sorted(said.json["gone"]) == sorted(gone)
    assert (said.json["documents"], said.json["ignored"]) == (11, [f"{notes}/left.txt"])
    assert "pruning keeps the documents of files and folders that could not be read whole" in said.json["notes"][0]
    said = likewise("index", ".likewise", "notes", "--prune", "--dry-run")
    assert sorted(said.out.splitlines()[:-1]) == sorted(f"gone      {uri.removeprefix(f'{folder}/')}" for uri in gone)
    assert said.out.endswith(".likewise: --prune would remove 4 of 11 documents\n")
    assert ((folder / ".likewise" / "catalog.db").read_bytes(), len(encoder.seen)) == (before, embedded)
    assert likewise("update", "--prune", "--json").json["pruned"] == 4
    with Index.open(folder / ".likewise") as index:
        assert not {document.uri for document in index} & set(gone)
    for file in notes.glob("*.*"):
        file.unlink()
    said = likewise("update", "--prune", "--dry-run")
    assert (said.code, said.out.count("gone")) == (2, 7)
    assert "pruning would remove 7 of 7 documents, more than half" in said.err
    likewise("update", "--dry-run").failed(2, "--prune")
    likewise("index", ".likewise", "notes", "--prune", "--dry-run", "--rebuild").failed(2, "--rebuild")
    likewise("update", "--prune", "--dry-run", "--forget", "notes").failed(2, "--forget")
    likewise("index", "new.index", "notes", "--prune", "--dry-run").failed(2, "new.index")
    assert not (folder / "new.index").exists()


def test_a_source_that_is_missing_can_be_forgotten(likewise: Callable[..., Any], folder: Path) -> None:
    likewise("index", ".likewise", "notes", folder.parents[1] / "far.txt")
    (folder.parents[1] / "far.txt").unlink()
    assert likewise("status", "--json").json["missing"] == [str(folder.parents[1] / "far.txt")]
    likewise("update", "--prune").failed(2, "far.txt", "--moved OLD NEW", "--forget SOURCE")
    assert likewise("update", "--forget", "../../far.txt").code == 0
    assert (likewise("status", "--json").json["missing"], likewise("update").code) == ([], 0)
    assert likewise("update", "--forget", "never").code == 2
    said = likewise("update", "--forget", "notes").succeeded()
    assert said.out == ""
    assert said.err == "likewise: warning: .likewise: notes is forgotten, and no SOURCE is left to read\n"
    assert "no SOURCE is recorded" in likewise("update").err


def test_a_rebuilt_index_remembers_its_sources(likewise: Callable[..., Any], folder: Path) -> None:
    likewise("index", "notes")
    assert likewise("index", ".likewise", "notes/moon.txt", "--rebuild", "--max-tokens", 16).code == 0
    recorded = [str(folder / "notes"), str(folder / "notes" / "moon.txt")]
    assert likewise("status", "--json").json["sources"] == recorded


def test_a_source_that_was_moved_is_known_by_its_new_name(likewise: Callable[..., Any], folder: Path) -> None:
    far, new = folder.parents[1] / "far", folder.parents[1] / "deep" / "er"
    far.mkdir()
    (far / "a.txt").write_text("a comet")
    (far / "r.jsonl").write_text('{"text": "a star"}\n{"id": "x", "text": "a sun"}\n')
    likewise("index", "notes").succeeded()
    likewise("index", ".likewise", far, folder / "notes" / "moon.txt").succeeded()
    likewise("update", "--moved", far, new).failed(2, "does not exist", "nothing was moved")
    new.parent.mkdir()
    likewise("update", "--moved", far, folder).failed(2, "has none of the 2 files of ../../far", "nothing was moved")
    far.rename(new)
    likewise("update", "--moved", far.with_name("never"), new).failed(2, "never", "no document, file or SOURCE")
    said = likewise("update", "--moved", far, new, "--json").succeeded()
    assert said.err.splitlines()[0] == "likewise: moved 3 documents from ../../far to ../../deep/er"
    assert [said.json[name] for name in ("indexed", "updated", "unchanged")] == [0, 0, 5]
    with Index.open(folder / ".likewise") as index:
        assert {str(new / "a.txt"), str(new / "r.jsonl:1"), "x"} < {document.uri for document in index}
        assert [document.path for document in index if document.uri == "x"] == [str(new / "r.jsonl")]
        assert len(index) == 5
    assert str(new) in likewise("status", "--json").json["sources"]
    (folder / "notes" / "a.txt").write_text("a planet")
    likewise("update").succeeded()
    likewise("update", "--moved", new, folder / "notes").failed(
        2, "1 document of the index already", "nothing was moved"
    )
