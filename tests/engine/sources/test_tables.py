"""Tables and JSON lists without a text: rows as documents, headers that are found, and tables that are one document."""

from __future__ import annotations

import csv
import json
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from indexer.records import Document
from indexer.sources import Entry
from indexer.sources.records import table

Collect = Callable[..., list[Entry]]


def documents(collect: Collect, path: Path, content: str, **options: object) -> list[Document]:
    path.write_text(content)
    entries = collect(path, **options)
    assert [(entry.state, entry.reason.text()) for entry in entries if entry.document is None] == []
    return [entry.document for entry in entries if entry.document is not None]


def facts(document: Document) -> tuple[str, str, str, dict[str, object]]:
    return Path(document.uri).name, document.title, document.text, dict(document.metadata)


def test_rows_are_read_as_column_and_value(tmp_path: Path, collect: Collect) -> None:
    rows = 'id,title,town,people,capital,founded\n7,Trip 1,"Bonn\nam Rhein",330000,false,\n8,,Paris,2100000,true,-250\n'
    assert [facts(document) for document in documents(collect, tmp_path / "a.csv", rows)] == [
        (
            "7",
            "Trip 1",
            "id: 7\ntown: Bonn\nam Rhein\npeople: 330000\ncapital: false",
            {"town": "Bonn\nam Rhein", "people": 330000, "capital": False},
        ),
        (
            "8",
            "",
            "id: 8\ntown: Paris\npeople: 2100000\ncapital: true\nfounded: -250",
            {"town": "Paris", "people": 2100000, "capital": True, "founded": -250},
        ),
    ]


@pytest.mark.parametrize("delimiter", [";", ",", "|", "\t"])
def test_blanks_around_cells_do_not_count(tmp_path: Path, collect: Collect, delimiter: str) -> None:
    quoted = "Köln" if delimiter == "\t" else f'"Köln{delimiter} Deutz"'  # quotes of a file with tabs may be text
    rows = f"id ; town ; people ; open\n7 ; {quoted} ; 1090000 ; true\n 8; Paris;  ;false \n".replace(";", delimiter)
    town = quoted.strip('"')
    first, second = documents(collect, tmp_path / "a.csv", rows)
    assert facts(first)[::3] == ("7", {"town": town, "people": 1090000, "open": True})
    assert facts(second)[::3] == ("8", {"town": "Paris", "open": False})
    assert facts(second)[2] == "id: 8\ntown: Paris\nopen: false"


def test_a_column_of_dates_with_dots_is_a_field_of_dates(tmp_path: Path, collect: Collect) -> None:
    rows = "name;born;seen;wrong;version\nAnna;1.2.1980;31.12.2024 08:30;31.02.2024;1.2.2024\nBen;;;1.1.2024;1.2\n"
    first, second = documents(collect, tmp_path / "a.csv", rows)
    dates = {"born": "1980-02-01", "seen": "2024-12-31T08:30"}
    assert facts(first)[2:] == (
        "name: Anna\nborn: 1.2.1980\nseen: 31.12.2024 08:30\nwrong: 31.02.2024\nversion: 1.2.2024",
        {"name": "Anna", **dates, "wrong": "31.02.2024", "version": "1.2.2024"},
    )
    assert second.metadata == {"name": "Ben", "wrong": "1.1.2024", "version": "1.2"}


def test_a_column_of_german_numbers_is_a_field_of_numbers(tmp_path: Path, collect: Collect) -> None:
    rows = "ort;preis;anteil;unklar;version\nKöln;1.234,00;12,5;1,234;1.234.567\nBonn;-5;0,25;7,5;1,5\n"
    rows += "Ulm;1.234.567,8;3;2;1\n"
    first, second, third = documents(collect, tmp_path / "a.csv", rows)
    assert first.metadata == {"ort": "Köln", "preis": 1234.0, "anteil": 12.5, "unklar": "1,234", "version": "1.234.567"}
    assert second.metadata == {"ort": "Bonn", "preis": -5, "anteil": 0.25, "unklar": "7,5", "version": "1,5"}
    assert third.metadata["preis"] == 1234567.8
    (listed, _) = documents(collect, tmp_path / "b.csv", 'name,likes\nAnna,"1,2"\nBen,"3,7"\n')
    assert listed.metadata["likes"] == "1,2"


def test_dots_are_not_decimal_points_beside_german_numbers(tmp_path: Path, collect: Collect) -> None:
    first, second = documents(
        collect, tmp_path / "a.csv", "ort;preis;menge;flaeche\nKöln;0,125;1.234;1.5\nBonn;2;950;2\n"
    )
    assert first.metadata == {"ort": "Köln", "preis": 0.125, "menge": "1.234", "flaeche": 1.5}
    assert second.metadata == {"ort": "Bonn", "preis": 2.0, "menge": "950", "flaeche": 2.0}
    (first, _) = documents(collect, tmp_path / "b.csv", "ort;menge;lang\nKöln;1.234;1234,567\nBonn;9;8901,234\n")
    assert (first.metadata["menge"], first.metadata["lang"]) == ("1.234", 1234.567)
    (first, _) = documents(collect, tmp_path / "c.csv", "town;length;share\nYork;1.234;0.5\nBath;9;0.25\n")
    assert (first.metadata["length"], first.metadata["share"]) == (1.234, 0.5)


def test_lists_of_two_numbers_are_not_numbers_beside_decimal_points(tmp_path: Path, collect: Collect) -> None:
    (first, _) = documents(
        collect, tmp_path / "a.csv", "town;rooms;height;loss\nYork;1,2;0.5;-1,5\nBath;3,7;12.25;2,5\n"
    )
    assert first.metadata == {"town": "York", "rooms": "1,2", "height": 0.5, "loss": -1.5}


def test_a_column_keeps_its_type_beside_a_few_other_cells(tmp_path: Path, collect: Collect) -> None:
    rows = [["id", "price", "seen", "sold", "share", "zip", "rooms"]]
    rows += [[f"r{n}", f"{n}.5", f"{1 + n % 28}.2.2024", "true", f"{n},5", f"1{n:04}", f"{n}"] for n in range(100)]
    rows[50] = ["r49", "ask us", "soon", "maybe", "1/2", "01067", "two or three"]
    for line, cell in ((60, "4.5"), (61, "two"), (62, "three"), (63, "four"), (64, "five"), (65, "six")):
        rows[line][6] = cell
    (tmp_path / "a.csv").write_text("\n".join(";".join(row) for row in rows) + "\n")
    entries = collect(tmp_path / "a.csv")
    read = {entry.uri: entry.document.metadata for entry in entries if entry.document is not None}
    assert read["r7"] == {
        **{"price": 7.5, "seen": "2024-02-08", "sold": True, "share": 7.5},
        **{"zip": "10007", "rooms": "7"},
    }
    assert read["r49"] == {
        **{"price": "ask us", "seen": "soon", "sold": "maybe", "share": "1/2"},
        **{"zip": "01067", "rooms": "two or three"},
    }
    assert {entry.uri: [note.text() for note in entry.notes] for entry in entries if entry.notes} == {
        "r49": [
            'line 51: "ask us" in column "price" is not a number: it stays text, and filters compare the other cells '
            "of the column alone"
        ]
    }


@pytest.mark.parametrize(
    ("cells", "kinds"),
    [
        (["1"] * 19 + ["2.5"], {float}),  # a number is no stranger among whole numbers
        (["1"] * 19 + ["x"], {int, str}),
        (["1"] * 18 + ["x"], {str}),
        (["x"] + ["1"] * 199, {int, str}),
        (["true"] * 39 + ["?"], {bool, str}),
        (["4"] * 99 + ["+1"], {str}),
        (["4"] * 99 + ["1" * 19], {str}),
        (["x"] * 99 + ["1"], {str}),
    ],
)
def test_a_column_has_the_type_of_nineteen_in_twenty_cells(
    tmp_path: Path, collect: Collect, cells: list[str], kinds: set[type]
) -> None:
    rows = "".join(f"a,{cell}\n" for cell in cells)
    for header, text in (("name", None), ("text", "a")):  # without a text, and with one
        read = documents(collect, tmp_path / "a.csv", f"{header},n\n{rows}")
        assert {type(document.metadata["n"]) for document in read} == kinds
        assert text is None or read[0].text == text


def test_a_text_in_a_column_of_dates_is_noted(tmp_path: Path, collect: Collect) -> None:
    days = [f"2024-01-{1 + n % 28:02}{'T10:00' if n % 2 else ''}" for n in range(40)]
    rows = "name,seen\n" + "".join(f"a,{day}\n" for day in [*days, "31 January"])
    (tmp_path / "a.csv").write_text(rows)
    entries = collect(tmp_path / "a.csv")
    assert [entry.document and entry.document.metadata["seen"] for entry in entries] == [*days, "31 January"]
    (note,) = (note for entry in entries for note in entry.notes)
    assert note.text().startswith('line 42: "31 January" in column "seen" is not a date: it stays text, and filters ')


def test_only_a_row_that_is_read_names_another_cell(tmp_path: Path, collect: Collect) -> None:
    rows = [f"a,{n}" for n in range(60)]
    rows[5], rows[9] = " ,x", "a,y"
    (tmp_path / "a.csv").write_text("text,n\n" + "\n".join(rows) + "\n")
    entries = collect(tmp_path / "a.csv")
    assert [entry.uri.rpartition(":")[2] for entry in entries if entry.state == "skipped"] == ["7"]
    assert [note.text()[:12] for entry in entries for note in entry.notes] == ['line 11: "y"']


def test_semicolons_divide_where_commas_are_in_numbers_or_before_blanks(tmp_path: Path, collect: Collect) -> None:
    (document,) = documents(collect, tmp_path / "a.csv", "1,5;2,25;3,5\n4,5;5,75;6,5\n")
    assert document.text == "1,5\t2,25\t3,5\n4,5\t5,75\t6,5"
    (document,) = documents(
        collect, tmp_path / "b.csv", "1,5;2,5;01.02.2024;Meyer, Anna\n4,5;5,5;03.02.2024;Kern, Ben\n"
    )
    assert document.text.splitlines()[1] == "4,5\t5,5\t03.02.2024\tKern, Ben"
    (document,) = documents(collect, tmp_path / "c.csv", "1,a;b,3\n4,c;d,6\n")
    assert document.text == "1\ta;b\t3\n4\tc;d\t6"


def test_a_first_row_with_a_number_and_a_date_names_no_columns(tmp_path: Path, collect: Collect) -> None:
    (document,) = documents(collect, tmp_path / "a.csv", "1;01.02.2024\n2;03.02.2024\n")
    assert document.text == "1\t01.02.2024\n2\t03.02.2024"


def test_blanks_of_a_text_stay(tmp_path: Path, collect: Collect) -> None:
    (document,) = documents(collect, tmp_path / "a.csv", 'id; text; lang\n7 ; "  one  two " ; en \n')
    assert facts(document) == ("7", "", "  one  two  ", {"lang": "en"})


def test_column_names_are_made_unique(tmp_path: Path, collect: Collect) -> None:
    rows = ",name,,name,name_2,column_3\n0,Ada,x,Byron,y,z\n"
    (document,) = documents(collect, tmp_path / "a.csv", rows)
    assert facts(document)[2:] == (
        "column_1: 0\nname: Ada\ncolumn_3_2: x\nname_3: Byron\nname_2: y\ncolumn_3: z",
        {"column_1": 0, "name": "Ada", "column_3_2": "x", "name_3": "Byron", "name_2": "y", "column_3": "z"},
    )
    (document,) = documents(collect, tmp_path / "b.csv", "id,text,text\n1,one,two\n")
    assert facts(document) == ("1", "", "one", {"text_2": "two"})


@pytest.mark.parametrize(
    ("above", "title"),
    [
        ("Harvest of 2023\n\n", "Harvest of 2023"),
        ("Harvest of 2023,,\nin tons,,\n,,\n", "Harvest of 2023 in tons"),
        ('"Harvest, in tons"\n', "Harvest, in tons"),
    ],
)
def test_the_header_below_a_title(tmp_path: Path, collect: Collect, above: str, title: str) -> None:
    table = "fruit,2022,2023\napple,3,4\npear,1,2.5\n"
    first, second = documents(collect, tmp_path / "a.csv", above + table)
    line = 2 + above.count("\n")
    assert facts(first) == (
        f"a.csv:{line}",
        title,
        "fruit: apple\n2022: 3\n2023: 4",
        {"fruit": "apple", "2022": 3, "2023": 4},
    )
    assert facts(second)[2] == "fruit: pear\n2022: 1\n2023: 2.5"
    (with_text,) = documents(collect, tmp_path / "b.csv", above + "id;text;n\nx;one;1\n".replace(";", ","))
    assert facts(with_text) == ("x", title, "one", {"n": 1})


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("Ada,36,1.25\nBo,7,2.5\n", "Ada\t36\t1.25\nBo\t7\t2.5"),  # no header: numbers above numbers
        ("a note, with\none comma\nand then, well, two\n\nend\n", "a note\twith\none comma\nand then\twell\ttwo\nend"),
        ("name\nAda\nBo\n", "name\nAda\nBo"),  # one column
    ],
)
def test_what_is_no_list_of_records_is_one_document(tmp_path: Path, collect: Collect, table: str, text: str) -> None:
    (document,) = documents(collect, tmp_path / "a.csv", table)
    uri, title, read, metadata = facts(document)
    assert (uri, title, " ".join(read.split()), document.format) == ("a.csv", "a", " ".join(text.split()), "csv")
    assert metadata["size"] == len(table)


def test_rows_of_another_length(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.csv"
    path.write_text("region,2021,2022\n" + "north,1,2\n" * 9 + "south,3\n# estimated\n,\nwest,1,2,3\n")
    entries = collect(path)
    assert [entry.state for entry in entries] == ["read"] * 11 + ["failed"]
    assert [facts(entry.document)[2:] for entry in entries[8:11] if entry.document is not None] == [
        ("region: north\n2021: 1\n2022: 2", {"region": "north", "2021": 1, "2022": 2}),
        ("region: south\n2021: 3", {"region": "south", "2021": 3}),
        ("# estimated", {}),
    ]
    assert entries[-1].reason.text() == "line 14: has 4 cells where the header has 3"


def test_many_rows_are_one_document_with_a_note(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.csv"
    path.write_text("day,value\n" + "".join(f"d{day},{day}\n" for day in range(5001)))
    (entry,) = collect(path)
    assert entry.document is not None
    assert (entry.uri, entry.state, entry.document.text[:20]) == (str(path), "read", "day\tvalue\nd0\t0\nd1\t1\n")
    assert entry.document.text.endswith("d5000\t5000")
    note = "without a column of text were read as one document: name it with --text-field"
    assert entry.reason.text() == f"5,001 rows {note}"
    assert len(collect(path, text_field="day")) == 5001
    (skipped,) = collect(path, max_file_mb=0.01)
    assert (skipped.state, skipped.reason.text()) == (
        "skipped",
        "a table without a column of text, 0.1 MB, over the limit of 0.01 MB: raise --max-file-mb",
    )
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"day": day} for day in range(5001)]))
    (entry,) = collect(path)
    assert entry.document is not None
    assert (entry.document.text, entry.document.title) == (path.read_text(), "a")
    assert entry.reason.text() == "5,001 records without a text were read as one document: name it with --text-field"


def test_json_lists_without_a_text(tmp_path: Path, collect: Collect) -> None:
    records = [
        {"id": "a", "name": "Ada", "born": 1815, "tags": ["maths", "music"], "home": {"town": "London"}, "died": None},
        {"name": "Bo", "born": 1990.5, "alive": True},
    ]
    first, second = documents(collect, tmp_path / "a.json", json.dumps(records, indent=1))
    assert facts(first) == (
        "a",
        "",
        "id: a\nname: Ada\nborn: 1815\ntags: maths, music\nhome.town: London",
        {key: value for key, value in records[0].items() if key != "id"},
    )
    assert facts(second) == ("a.json:15", "", "name: Bo\nborn: 1990.5\nalive: true", records[1])
    for other in ('[{"a": 1}, {"b": 2}]', '[{"type": "p", "content": [{"x": 1}], "marks": [1]}]', "[{}]"):
        (document,) = documents(collect, tmp_path / "b.json", other)
        assert facts(document)[0::2] == ("b.json", other)


def test_json_records_are_named_by_the_line_they_begin_in(tmp_path: Path, collect: Collect) -> None:
    text = '\n[{"text":\n "a\\n"}, {"text": "b"},\n\n{"text": "c", "l": [1,\n2]}\n, {"text": "d"}, {"text": "e"} ]'
    found = documents(collect, tmp_path / "a.json", text)
    assert [(Path(document.uri).name, document.text.strip()) for document in found] == [
        ("a.json:2", "a"),
        ("a.json:3", "b"),
        ("a.json:5", "c"),
        ("a.json:7", "d"),
        ("a.json:7:2", "e"),
    ]


def test_a_repeated_member_is_noted(tmp_path: Path, collect: Collect) -> None:
    """Parsers take the last value. In a .json file the first record has the note."""
    note = "an object in it has {} more than once, and the last value was read: remove the others"
    many = "{" + ", ".join(f'"m{number}": 1, "m{number}": 2' for number in range(300)) + ', "text": "d"}'
    lines = '{"text": "old", "text": "new"}\n{"text": "x", "of": {"year": 1, "year": 2}}\n{"text": "c"}\n' + many
    three = '"m0", "m1", "m2" and 297 others'
    for name, text, expected in (
        ("a.jsonl", lines, ['"text"', '"year"', None, three]),
        ("b.json", f"[{lines.replace(chr(10), ',')}]", ['"text", "year", "m0" and 299 others', None, None, None]),
    ):
        (tmp_path / name).write_text(text)
        found = collect(tmp_path / name)
        assert [[each.text() for each in entry.notes] for entry in found] == [
            [note.format(members)] if members else [] for members in expected
        ]
        assert found[0].document is not None
        assert found[0].document.text == "new"


def test_numbers_are_text(tmp_path: Path, collect: Collect) -> None:
    (document,) = documents(collect, tmp_path / "a.jsonl", '{"id": "x", "text": 12.5}\n')
    assert facts(document) == ("x", "", "12.5", {})
    (document,) = documents(collect, tmp_path / "a.json", '{"id": "x", "text": 7}')
    assert facts(document) == ("x", "", "7", {})


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_word_of_a_table_is_in_its_texts(tmp_path: Path, collect: Collect, delimiter: str) -> None:
    """The second reader is the file itself, split at everything that is not a letter or digit."""
    source = random.Random(delimiter)
    for number in range(10):
        width = source.randint(2, 6)
        path = tmp_path / f"{number}.{'tsv' if delimiter == chr(9) else 'csv'}"
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            if source.random() < 0.5:
                writer.writerow(["Thetitle"])
            writer.writerow([f"name{column}" for column in range(width)])
            for _ in range(source.randint(2, 30)):
                choices = (str(source.randint(0, 9999)), f"w{source.randint(0, 99)} x", f"q{source.random()}", "")
                writer.writerow([source.choice(choices) for _ in range(width)])
            writer.writerow([f"w{column}" for column in range(width)])  # a name is not shown where nothing is below
        texts = [
            f"{entry.document.title}\n{entry.document.text}" for entry in collect(path) if entry.document is not None
        ]
        written = set(path.read_text().replace(delimiter, " ").replace('"', " ").split())
        assert written <= set("\n".join(texts).replace(":", " ").split())


def executed_lines(function: Callable[[], object]) -> int:
    """Return how many lines of table.py a call executes."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != table.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def test_a_repeated_column_name_takes_linear_work() -> None:
    few, many = (executed_lines(partial(table._unique, ["a"] * columns)) for columns in (100, 1000))
    assert many < 11 * few
    assert table._unique(["a", "a_3", "a", "", "a", "column_4"]) == ["a", "a_3", "a_2", "column_4_2", "a_4", "column_4"]


def test_short_rows_below_a_wide_header_take_little_work(tmp_path: Path, collect: Collect) -> None:
    header = ",".join(f"c{number}" for number in range(1000))
    work = []
    for rows in (20, 40):
        (tmp_path / "a.csv").write_text(f"{header}\n" + "1,2\n" * rows)
        work.append(executed_lines(partial(collect, tmp_path / "a.csv")))
    assert work[1] - work[0] < 120 * 20


def test_a_table_of_too_many_columns_fails(tmp_path: Path, collect: Collect) -> None:
    reason = "has more than 16,384 columns: split the table, or exchange its rows and columns"
    (tmp_path / "a.csv").write_text("a," * 16_385 + "\n" + "1," * 16_385 + "\n")
    (entry,) = collect(tmp_path / "a.csv")
    assert (entry.state, entry.reason.text()) == ("failed", reason)
    (tmp_path / "a.csv").write_text("id,text\n1,one\n2" + ",x" * 20_000 + "\n3,three\n")
    entries = [(entry.state, entry.reason.text()) for entry in collect(tmp_path / "a.csv")]
    assert entries == [("read", ""), ("failed", f"line 3: {reason}"), ("read", "")]


def outcomes(entries: list[Entry]) -> list[tuple[str, str, list[str]]]:
    """The name, text and notes of each document."""
    return [
        (Path(entry.uri).name, entry.document.text, [note.text() for note in entry.notes])
        for entry in entries
        if entry.document is not None
    ]


NUL = ["its NUL characters are left out: no text has them"]


def test_a_table_with_a_nul_is_read_and_the_record_is_noted(tmp_path: Path, collect: Collect) -> None:
    (tmp_path / "a.csv").write_bytes(b"name,city\nAnn,Rome\nB\0ob,Oslo\n")
    assert outcomes(collect(tmp_path / "a.csv")) == [
        ("a.csv:2", "name: Ann\ncity: Rome", []),
        ("a.csv:3", "name: Bob\ncity: Oslo", NUL),
    ]
    (tmp_path / "b.tsv").write_bytes(b"na\0me\ttext\nAnn\tfirst\nBob\tsec\0ond\n")
    assert outcomes(collect(tmp_path / "b.tsv")) == [("b.tsv:2", "first", NUL), ("b.tsv:3", "second", NUL)]
    (tmp_path / "c.jsonl").write_text('{"id": 1, "text": "w\\u0000ords", "place": "R\\u0000ome"}\n')
    (entry,) = collect(tmp_path / "c.jsonl")
    assert entry.document is not None
    assert (outcomes([entry]), entry.document.metadata) == ([("1", "words", NUL)], {"place": "Rome"})
    record = b'{"text": "a\0b", "k\\u0000": [{"in": "\\\\\\u0000x\\\\u0000"}]}'
    for name, content in (("e.jsonl", record), ("e.json", b"[%b]" % record)):
        (tmp_path / name).write_bytes(content + b"\n")
        (entry,) = collect(tmp_path / name)
        assert entry.document is not None
        assert (entry.document.text, entry.document.metadata) == ("ab", {"k": [{"in": "\\x\\u0000"}]})
        assert [note.text() for note in entry.notes] == NUL
    (tmp_path / "f.jsonl").write_bytes(b'{"id": "f", "text": "x"}\n\0\0\n{"id": "g", "text": "y"}\n' + b"\0" * 6)
    assert outcomes(collect(tmp_path / "f.jsonl")) == [("f", "x", []), ("g", "y", [])]
    (tmp_path / "d.csv").write_bytes(b"a,b\n" + b"\0\1\2\3" * 50)
    assert [(entry.state, entry.reason.text()) for entry in collect(tmp_path / "d.csv")] == [
        ("skipped", "a binary file, of no format that likewise reads")
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "sep=;\r\nname;note\r\nAnn;likes tea, and milk\r\n"),
        ("a.csv", '"sep=|"\nname|note\nAnn|likes tea, and milk\n'),
        ("a.tsv", "SEP=;\nname;note\nAnn;likes tea, and milk\n"),
        ("a.csv", '\ufeffsep=,\nname,note\nAnn,"likes tea, and milk"\n'),
    ],
)
def test_a_first_line_that_names_the_delimiter_is_no_header(
    tmp_path: Path, collect: Collect, name: str, content: str
) -> None:
    (document,) = documents(collect, tmp_path / name, content)
    assert facts(document) == (
        f"{name}:3",
        "",
        "name: Ann\nnote: likes tea, and milk",
        {"name": "Ann", "note": "likes tea, and milk"},
    )


def test_a_record_with_a_title_alone_is_a_document(tmp_path: Path, collect: Collect) -> None:
    records = [
        {"id": 1, "title": "Rye", "text": ""},
        {"id": 2, "title": "Oats"},
        {"id": 3, "title": "Hops", "text": None},
        {"id": 4, "title": 1984, "text": " "},
    ]
    content = "".join(json.dumps(record) + "\n" for record in records)
    assert [facts(document)[:3] for document in documents(collect, tmp_path / "a.jsonl", content)] == [
        ("1", "Rye", "Rye"),
        ("2", "Oats", "Oats"),
        ("3", "Hops", "Hops"),
        ("4", "1984", "1984"),
    ]
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "titles.jsonl").write_text('{"title": "Barley"}\n{"title": null, "text": "Malt"}\n')
    assert [text for _, text, _ in outcomes(collect(tmp_path / "folder"))] == ["Barley", "Malt"]
    (document,) = documents(collect, tmp_path / "b.csv", "id,title,text\n7,Wheat,\n")
    assert facts(document) == ("7", "Wheat", "Wheat", {})
