"""likewise info: what an index contains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_counts_and_settings_are_printed(likewise: Callable[..., Any], topics: Path) -> None:
    said = likewise("info", topics).succeeded()
    assert said.out.splitlines()[0].endswith(": 3 documents, 3 passages")
    report = likewise("info", topics, "--json").json
    assert (report["documents"], report["passages"]) == (3, 3)
    assert report["dimensions"] > 0
    assert report["fields"]["year"] == ["number"]


def test_the_ledger_names_what_was_skipped(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("bread")
    (tmp_path / "files" / "empty.txt").write_text("")
    assert likewise("index", tmp_path / "x.index", tmp_path / "files").code == 0
    said = likewise("info", tmp_path / "x.index", "--ledger", "skipped").succeeded()
    assert "empty.txt" in said.out
    assert "a.txt" not in said.out


def test_the_ledger_names_the_file_of_a_record(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    index, file = tmp_path / "x.index", tmp_path / "r.jsonl"
    file.write_text(lines({"id": "a", "text": "bread"}, {"id": "b", "text": ""}, {"text": ""}))
    assert likewise("index", index, file).code == 0
    assert likewise("info", index, "--ledger", "skipped").out == (
        f"skipped   b  in {file}  line 2: its text is empty\nskipped   {file}:3  line 3: its text is empty\n"
    )


def test_a_line_feed_in_a_name_ends_no_line(likewise: Callable[..., Any], tmp_path: Path) -> None:
    index, file = tmp_path / "x.index", tmp_path / "two\nlines\x1b.txt"
    file.write_text("bread")
    assert likewise("index", index, file).code == 0
    assert likewise("info", index, "--ledger").out == f"indexed   {tmp_path}/two lines\ufffd.txt\n"
    assert likewise("search", index, "-l", "bread").out == f"{tmp_path}/two lines\ufffd.txt\n"
    assert likewise("info", index, "--ledger", "--json").json["uri"] == str(file)


def test_the_ten_commonest_fields_are_printed_with_their_types(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    rare = [{"id": f"{number}", "text": "bread", "year": number, f"rare-{number:02}": "x"} for number in range(12)]
    records = lines({"id": "a", "text": "moon", "year": "unknown", "since": "2024-05-02"}, *rare)
    assert likewise("index", tmp_path / "x.index", "-", stdin=records).code == 0
    (line,) = [row for row in likewise("info", tmp_path / "x.index").out.splitlines() if row.startswith("fields")]
    rarest = ", ".join(f"rare-{number:02} (text)" for number in range(9))
    assert line == (
        f"fields     uri, title, path, format, modified; year (number or text), {rarest}, and 4 more (--json names all)"
    )
    assert len(likewise("info", tmp_path / "x.index", "--json").json["fields"]) == 14


def test_languages_are_those_of_the_documents(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    """One long English text has more passages than the German texts together."""
    english = "The bread is baked in the oven of the house, and the people eat it with butter from the farm. " * 80
    german = "Das Brot wird im Ofen des Hauses gebacken, und die Leute essen es mit Butter vom Bauernhof im Dorf. " * 3
    records = [{"id": "en", "text": english}, *({"id": f"de {n}", "text": german} for n in range(3))]
    assert likewise("index", tmp_path / "x.index", "-", stdin=lines(*records)).code == 0
    report = likewise("info", tmp_path / "x.index", "--json").json
    assert report["passages"] > 6
    assert [*report["languages"]] == ["de", "en"]
    assert 0.7 < report["languages"]["de"] < 0.8
