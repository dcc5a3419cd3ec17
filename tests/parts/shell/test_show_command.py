"""likewise show: a document as it is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_show_keeps_tabs_and_lines(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n\techo\tone \x1b[31m\n")
    likewise("index", tmp_path / "x.index", tmp_path / "Makefile")
    said = likewise("show", tmp_path / "x.index", tmp_path / "Makefile")
    assert said.out.endswith("\n\nall:\n\techo\tone \N{REPLACEMENT CHARACTER}[31m\n\n")


def test_title_fields_and_text_are_printed(likewise: Callable[..., Any], topics: Path) -> None:
    head, text = likewise("show", topics, "moon").out.split("\n\n")
    assert head.splitlines() == ["title: Moon", "format: jsonl", "year: 2022"]
    assert text == "The moon pulls the water of the sea.\n"
    document = likewise("show", topics, "moon", "--json").json
    assert (document["uri"], document["metadata"]) == ("moon", {"year": 2022})


def test_a_misspelt_uri_is_refused(likewise: Callable[..., Any], topics: Path) -> None:
    likewise("show", topics, "mooon").failed(2, "mooon")


def test_a_table_and_a_mailbox_are_printed_as_their_documents(likewise: Callable[..., Any], tmp_path: Path) -> None:
    table, box = tmp_path / "shop" / "lamps.csv", tmp_path / "shop" / "Inbox"
    table.parent.mkdir()
    table.write_text("id,text,price\nx9,A brass lamp,40\nx2,A paper lamp,12\n")
    mail = "From a@example.org Wed May  1 10:00:00 2024\nFrom: a@example.org\nMessage-ID: <{}>\nSubject: S\n\n{}\n\n"
    box.write_text(mail.format("m1", "Ships sail.") + mail.format("m2", "Trains run."))
    likewise("index", tmp_path / "x.index", table.parent)
    said = likewise("show", tmp_path / "x.index", table)
    modified = said.out.splitlines()[2]
    assert modified.startswith("modified: ")
    assert said.out.split("\n\n") == [
        f"uri: x9\nformat: csv\n{modified}\nprice: 40",
        "A brass lamp",
        f"uri: x2\nformat: csv\n{modified}\nprice: 12",
        "A paper lamp",
        "",
    ]
    rows = likewise("show", tmp_path / "x.index", table, "--json").out.splitlines()
    assert [json.loads(row)["uri"] for row in rows] == ["x9", "x2"]
    mails = [json.loads(row) for row in likewise("show", tmp_path / "x.index", box, "--json").out.splitlines()]
    assert [each["uri"] for each in mails] == [f"{box}#m1", f"{box}#m2"]
    assert "Trains run." in mails[1]["text"]
    assert "A paper lamp" in likewise("show", tmp_path / "x.index", "x2").out
    likewise("show", tmp_path / "x.index", table.parent).failed(2, "has no document")
    likewise("show", tmp_path / "x.index", 'a "b" \\').failed(2, "has no document")
    likewise("show", tmp_path / "x.index", "\udcff").failed(2)


def test_the_end_of_a_path_names_a_table_or_a_mailbox(likewise: Callable[..., Any], tmp_path: Path) -> None:
    index, shop = tmp_path / "x.index", tmp_path / "shop"
    for number, name in enumerate(("north/lamps.csv", "south/lamps.csv", "Inbox", "south/only.csv")):
        (shop / name).parent.mkdir(parents=True, exist_ok=True)
        (shop / name).write_text(f"id,text\na{number},A lamp of {name}\nb{number},Another\n")
    (shop / "Inbox").write_text("From a@example.org Wed May  1 10:00:00 2024\nMessage-ID: <m1>\n\nShips sail.\n\n")
    likewise("index", index, shop).succeeded()
    for end in ("only.csv", "north/lamps.csv"):
        assert likewise("show", index, end).succeeded().out.count("uri: ") == 2
    assert likewise("show", index, "Inbox", "--json").succeeded().json["uri"] == f"{shop}/Inbox#m1"
    said = likewise("show", index, "lamps.csv")
    named = f"2 documents end with this; name one of them:\n  {shop}/north/lamps.csv\n  {shop}/south/lamps.csv"
    assert (said.code, named in said.err) == (2, True)
    likewise("show", index, "missing.csv").failed(2, "show also takes the path of a table or a mailbox")


def test_a_field_with_the_name_of_a_member_has_its_prefix(likewise: Callable[..., Any], tmp_path: Path) -> None:
    page = tmp_path / "meta.md"
    page.write_text("---\nformat: paperback\nmodified: never\n---\nA book.\n")
    likewise("index", tmp_path / "x.index", page).succeeded()
    head = likewise("show", tmp_path / "x.index", page).out.split("\n\n")[0].splitlines()
    assert [line.partition(":")[0] for line in head if "title:" not in line] == [
        *("format", "modified", "metadata.format", "metadata.modified", "size")
    ]
