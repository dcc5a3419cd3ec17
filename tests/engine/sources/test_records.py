"""Records: which members become what, what is wrong with bad ones, typed columns, and streaming."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.sources import Entry, ReadOptions, open_sources, read
from indexer.stores.addresses.open import holds_store

Collect = Callable[..., list[Entry]]


@pytest.fixture
def lines(tmp_path: Path, collect: Collect) -> Callable[..., list[Entry]]:
    def run(*records: object, **options: object) -> list[Entry]:
        path = tmp_path / "r.jsonl"
        path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in records))
        return collect(path, **options)

    return run


def read_only(entry: Entry) -> tuple[str, str, str, dict[str, object]]:
    assert entry.document is not None, entry
    document = entry.document
    assert document.uri == entry.uri
    return entry.uri, document.title, document.text, dict(document.metadata)


def test_beir_and_the_usual_names(lines: Callable[..., list[Entry]], tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    entries = lines(
        {"_id": "4983", "title": "Brain", "text": "Matter.", "metadata": {}},
        {"id": 7, "body": "b", "year": 2020, "tags": ["x"], "nested": {"deep": 1}},
        {"uri": "u", "content": "c", "title": None, "metadata": {"year": 1, "own": True}, "year": 2},
        {"doc_id": "d", "abstract": "a", "metadata": "a text"},
        {"text": "no id"},
        {"id": "", "text": "empty id"},
        {"_id": None, "id": "other", "text": "null id"},
        {"id": 1.5, "text": "t", "title": 12},
        {"id": "list", "text": "t", "title": ["Comets", 7]},
        {"id": "alone", "title": ["Comets"]},
    )
    assert [read_only(entry) for entry in entries] == [
        ("4983", "Brain", "Matter.", {}),
        ("7", "", "b", {"year": 2020, "tags": ["x"], "nested": {"deep": 1}}),
        ("u", "", "c", {"year": 2, "own": True}),
        ("d", "", "a", {"metadata": "a text"}),
        (f"{file}:5", "", "no id", {}),
        (f"{file}:6", "", "empty id", {}),
        ("other", "", "null id", {}),
        ("1.5", "12", "t", {}),
        ("list", "Comets, 7", "t", {}),
        ("alone", "Comets", "Comets", {}),
    ]
    document = entries[0].document
    assert document is not None
    assert (document.path, document.format) == (str(file), "jsonl")
    assert document.modified is not None


@pytest.mark.parametrize(
    ("line", "state", "reason"),
    [
        ("[1]", "failed", "line 1: not a JSON object (found a list)"),
        ("17", "failed", "line 1: not a JSON object (found a number)"),
        ("null", "failed", "line 1: not a JSON object (found null)"),
        (
            "{",
            "failed",
            "line 1: not valid JSON (Expecting property name enclosed in double quotes, column 2)",
        ),
        ("[" * 100_000, "failed", "line 1: not valid JSON (maximum recursion depth exceeded"),
        ('{"text": "x", "n": NaN}', "failed", "line 1: not valid JSON (NaN is not a finite number)"),
        ('{"text": "x", "n": 1e999}', "failed", "line 1: not valid JSON (1e999 is not a finite number)"),
        ('{"text": "\\ud800"}', "failed", "line 1: an escape \\uD800 to \\uDFFF has no partner"),
        (
            '{"id": "a"}',
            "skipped",
            'line 1: has no text: give it a "text", or name the member with --text-field',
        ),
        ('{"text": null}', "skipped", 'line 1: its text "text" is null'),
        ('{"text": true}', "failed", 'line 1: its text "text" must be a string or a number (found a boolean)'),
        ('{"text": {"a": 1}}', "failed", 'line 1: its text "text" must be a string or a number (found an object)'),
        (
            '{"id": [1], "text": "x"}',
            "failed",
            'line 1: its id "id" must be a string or a number (found a list)',
        ),
        ('{"text": "x", "vector": [1, "2"]}', "failed", 'line 1: its "vector" must be a list of numbers'),
        ('{"text": ""}', "skipped", "line 1: its text is empty"),
        ('{"title": " ", "text": " \\n"}', "skipped", "line 1: its text is empty"),
    ],
)
def test_bad_records(lines: Callable[..., list[Entry]], line: str, state: str, reason: str) -> None:
    bad, good = lines(line, {"id": "good", "text": "x"})
    assert (bad.state, bad.reason.text()[: len(reason)], bad.document) == (state, reason, None)
    assert "\n" not in bad.reason.text()
    assert good.state == "read"


def test_a_failed_record_is_named_by_its_id_or_its_line(lines: Callable[..., list[Entry]], tmp_path: Path) -> None:
    assert [entry.uri for entry in lines({"id": "a"}, "", "[]", {"id": "b", "text": ""})] == [
        "a",
        f"{tmp_path}/r.jsonl:3",
        "b",
    ]


def test_invalid_utf8_fails_its_line_only(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(b'\xef\xbb\xbf{"id": 1, "text": "a"}\r\n{"text": "\xff"}\n{"id": 3, "text": "\xc3\xa9"}')
    entries = collect(path)
    assert [entry.state for entry in entries] == ["read", "failed", "read"]
    assert entries[1].reason.text() == "line 2: not valid UTF-8 (byte 11)"
    assert read_only(entries[2])[2] == "é"
    path.write_bytes('{"text": "x"}'.encode("utf-16"))
    assert collect(path)[0].reason.text() == "is written in utf-16: save it as UTF-8"


def test_named_fields(lines: Callable[..., list[Entry]]) -> None:
    names = {"id_field": "key", "title_field": "name", "text_field": "blurb"}
    found, no_title, no_id, no_text = lines(
        {"key": 1, "name": "N", "blurb": "B", "id": 5, "text": "T", "title": "X"},
        {"key": 2, "blurb": "B"},
        {"blurb": "B"},
        {"key": 3, "text": "T"},
        **names,
    )
    assert read_only(found) == ("1", "N", "B", {"id": 5, "text": "T", "title": "X"})
    assert read_only(no_title) == ("2", "", "B", {})
    assert no_id.reason.text() == 'line 3: has no "key", which --id-field names'
    assert (no_text.state, no_text.reason.text()) == ("skipped", 'line 4: has no "blurb", which --text-field names')


def test_a_member_that_no_record_has_fails_the_file(lines: Callable[..., list[Entry]], tmp_path: Path) -> None:
    first, second, whole = lines({"id": 1, "text": "T"}, {"id": 2, "body": "B"}, text_field="blurb")
    assert [first.state, second.state] == ["skipped", "skipped"]
    reason = 'no record has "blurb", which --text-field names'
    assert (whole.uri, whole.state, whole.reason.text()) == (f"{tmp_path}/r.jsonl", "failed", reason)


def test_vectors(lines: Callable[..., list[Entry]]) -> None:
    own, none, word = lines(
        {"text": "x", "vector": [1, 0.5]}, {"text": "x", "vector": None}, {"text": "x", "vector": "mosquito"}
    )
    assert (own.vector, none.vector, word.vector) == ([1.0, 0.5], None, None)
    assert read_only(own)[3] == {}
    assert read_only(word)[3] == {"vector": "mosquito"}


def test_a_record_over_the_limit_fails_and_the_next_is_read(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "r.jsonl"
    with path.open("w") as file:
        file.write('{"id": 1, "text": "' + "x" * 5_000_000 + '"}\n{"id": 2, "text": "y"}\n')
    large, good = collect(path, max_file_mb=1)
    assert large.reason.text() == "line 1: the record is over 1 MB: raise --max-file-mb, or close an open quote"
    assert (large.uri, good.uri) == (f"{path}:1", "2")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r.jsonl", "r.csv"])
def test_files_of_records_are_streamed(tmp_path: Path, collect: Collect, name: str) -> None:
    path = tmp_path / name
    with path.open("w") as file:
        file.write("id,text\n" if name == "r.csv" else "")
        for number in range(2000):
            text = f"{number} " * 1500
            file.write(f"{number},{text}\n" if name == "r.csv" else json.dumps({"id": number, "text": text}) + "\n")
    size = path.stat().st_size
    (source,) = open_sources([str(path)], ReadOptions(max_file_mb=1), holds_store)
    tracemalloc.start()
    count = sum(entry.state == "read" for entry in read(source, ReadOptions(max_file_mb=1), lambda _: None))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 2000
    assert size > 10_000_000 > 5 * peak


def test_stdin(collect: Collect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"id": "a", "text": "x"}\n{"text": "y"}\n[]\n')))
    first, second, bad = collect("-")
    assert (first.uri, second.uri, bad.uri) == ("a", "-:2", "-:3")
    assert first.document is not None
    assert (first.file, first.document.path, first.document.format, first.stamp) == ("-", None, "jsonl", None)
    assert bad.reason.text() == "line 3: not a JSON object (found a list)"


def test_json_files(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "r.json"
    path.write_text('[{"id": "a", "text": "x"}, {"id": "b"},\n {"text": "y", "year": 1}]')
    first, bad, third = collect(path)
    assert read_only(first) == ("a", "", "x", {})
    assert (bad.state, bad.reason.text()[:20]) == ("skipped", "line 1: has no text:")
    assert read_only(third) == (f"{path}:2", "", "y", {"year": 1})
    path.write_text('{"id": "one", "text": "x"}')
    assert read_only(collect(path)[0])[0] == "one"
    for cut, place in (
        ('[{"id": "a", "text": "x"},\n {"id": "b", "te', "line 2: not valid JSON (Unterminated string"),
        ('[{"text": "x"}', "line 1: "),
    ):
        path.write_text(cut)
        (damaged,) = collect(path)
        assert (damaged.state, damaged.reason.text()[: len(place)]) == ("failed", place)
    for other in (
        '{"name": "settings"}',
        '[{"name": "settings"},',
        '// comment\n[{"text": "x"}]',
        "[1, 2]",
        '// comment\n{"text": "x"}',
        "[]",
    ):
        path.write_text(other)
        (entry,) = collect(path)
        assert read_only(entry) == (str(path), "r", other, {"size": len(other)})


def table(collect: Collect, path: Path, content: str | bytes, **options: object) -> list[Entry]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return collect(path, **options)


def test_columns_are_typed_over_the_whole_file(tmp_path: Path, collect: Collect) -> None:
    rows = (
        "id,text,whole,real,flag,day,code,plus,mixed,sparse,long,void\n"
        "007,a,1,1,true,2024-01-31,007,+1,1,,12345678901234567890,\n"
        "008,b,-20,2.5e3,FALSE,2024-02-01,010,+2,x,3,1,\n"
    )
    first, second = table(collect, tmp_path / "r.csv", rows)
    common = {"day": "2024-01-31", "code": "007", "plus": "+1", "mixed": "1", "long": "12345678901234567890"}
    assert read_only(first) == ("007", "", "a", {"whole": 1, "real": 1.0, "flag": True, **common})
    values = read_only(second)[3]
    assert values["sparse"] == 3
    assert [type(values[name]) for name in ("whole", "real", "flag", "sparse")] == [int, float, bool, int]
    assert (values["mixed"], values["long"]) == ("x", "1")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_quotes_and_newlines(tmp_path: Path, collect: Collect, delimiter: str) -> None:
    rows = 'id,title,text\r\n1,T,"two\r\nlines, ""quoted"""\r\n\r\n2,U,plain: text\r\n'.replace(",", delimiter)
    first, second = table(collect, tmp_path / "r.csv", rows)
    assert read_only(first)[:3] == ("1", "T", f'two\r\nlines{delimiter} "quoted"')
    assert read_only(second)[0] == "2"
    assert first.document is not None
    assert first.document.format == "csv"


def test_rows_without_id_are_named_by_the_line_they_begin_at(tmp_path: Path, collect: Collect) -> None:
    entries = table(collect, tmp_path / "r.tsv", 'text\tn\n"a\nb"\t1\n\nc\t2\nd\t3\t4\ne\n')
    assert [entry.uri.rsplit(":", 1)[1] for entry in entries] == ["2", "5", "6", "7"]
    assert [entry.state for entry in entries] == ["read", "read", "failed", "failed"]
    assert [entry.reason.text() for entry in entries[2:]] == [
        "line 6: has 3 cells where the header has 2",
        "line 7: has 1 cells where the header has 2",
    ]


def test_quotes_in_tab_separated_text_are_text_unless_they_enclose_cells(tmp_path: Path, collect: Collect) -> None:
    plain = 'id\ttext\n1\tsaid\n2\t"Hello" he said\n3\t"never closed\n4\tlast\n'
    texts = [read_only(entry)[2] for entry in table(collect, tmp_path / "plain.tsv", plain)]
    assert texts == ["said", '"Hello" he said', '"never closed', "last"]
    quoted = 'id\ttext\n1\t"say ""yes"""\n2\t"two\nlines"\n'
    texts = [read_only(entry)[2] for entry in table(collect, tmp_path / "quoted.tsv", quoted)]
    assert texts == ['say "yes"', "two\nlines"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_of_tables(tmp_path: Path, collect: Collect, encoding: str) -> None:
    prose = "Der Käufer hätte größere Äpfel gewählt, wären sie für weniger Geld verfügbar gewesen."
    rows = "id;text\n" + "".join(f"{number};{prose}\n" for number in range(20))
    assert read_only(table(collect, tmp_path / "r.csv", rows.encode(encoding))[3])[2] == prose


@pytest.mark.parametrize(
    ("content", "options", "state", "reason"),
    [
        (
            "text,b\n1,2\n",
            {"id_field": "key"},
            "failed",
            'has no column "key", which --id-field names (columns: text, b)',
        ),
        (
            "text,b\n1,2\n",
            {"text_field": "body"},
            "failed",
            'has no column "body", which --text-field names (columns: text, b)',
        ),
        ("text,b\n", {}, "skipped", "holds no rows below its header"),
        ("a,b\n", {}, "skipped", "holds no rows below its header"),
        ("\n\n", {}, "skipped", "holds no rows below its header"),
    ],
)
def test_bad_tables(
    tmp_path: Path, collect: Collect, content: str, options: dict[str, str], state: str, reason: str
) -> None:
    (entry,) = table(collect, tmp_path / "r.csv", content, **options)
    assert (entry.uri, entry.state, entry.reason.text()) == (str(tmp_path / "r.csv"), state, reason)


def test_a_missing_title_column_is_an_empty_title(tmp_path: Path, collect: Collect) -> None:
    (entry,) = table(collect, tmp_path / "r.csv", "text,title\na,b\n", title_field="name")
    assert read_only(entry)[1:] == ("", "a", {"title": "b"})


def test_an_open_quote_does_not_swallow_the_file(tmp_path: Path, collect: Collect) -> None:
    rows = 'id,text\n1,good\n2,"open\n' + "3,x\n" * 400_000
    good, bad = table(collect, tmp_path / "r.csv", rows, max_file_mb=1)
    assert good.uri == "1"
    assert bad.reason.text() == "line 3: the record is over 1 MB: raise --max-file-mb, or close an open quote"


def test_a_blank_jsonl_holds_no_records(lines: Callable[..., list[Entry]]) -> None:
    (entry,) = lines("", " ")
    assert (entry.state, entry.reason.text()) == ("skipped", "holds no records")


def test_a_table_without_text_is_read_row_by_row(tmp_path: Path, likewise: Callable[..., Any]) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.jsonl").write_text('{"_id": "a", "text": "one"}\n')
    (tmp_path / "data" / "towns.tsv").write_text("town\triver\tpeople\nBonn\tRhine\t330000\nTrier\tMoselle\t110000\n")
    likewise("index", tmp_path / "x.index", tmp_path / "data", "--json").reported(0, indexed=3, skipped=0, failed=0)
    found = likewise("search", tmp_path / "x.index", "river Moselle", "--where", "people < 200000", "--json").json
    assert [hit["title"] for hit in found["hits"]] == [""]
    shown = likewise("show", tmp_path / "x.index", found["hits"][0]["uri"], "--json").json
    assert shown["text"] == "town: Trier\nriver: Moselle\npeople: 110000"


def test_other_members_are_read_again_though_the_file_has_not_changed(
    tmp_path: Path, likewise: Callable[..., Any]
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": "a", "text": "one", "other": "two"}\n')
    os.utime(file, (1, 1))
    assert likewise("index", tmp_path / "x.index", file, "--json").json["indexed"] == 1
    assert likewise("index", tmp_path / "x.index", file, "--json").json["unchanged"] == 1
    result = likewise("index", tmp_path / "x.index", file, "--text-field", "other", "--json")
    assert (result.json["indexed"], result.json["unchanged"]) == (1, 0)
    assert likewise("show", tmp_path / "x.index", "a", "--json").json["text"] == "two"
