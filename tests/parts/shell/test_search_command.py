"""likewise search, similar, show and list as a person uses them; no character of a document controls a terminal."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from indexer import Document, Index
from indexer.encoders import Encoder, Recipe, get_query_encoder
from likewise.shell.terminal.output import printable
from likewise.shell.terminal.terminal import Terminal

NASTY = (
    "\x1b]0;owned\x07 \x1b[31mred\x1b[0m \x1b[2J \x9b31m \x90q\x9c bell\x07 back\x08 del\x7f cr\rover "
    "\u202egnp.exe\u202c \u2066iso\u2069 \u200e\u200f\u061c \u2028line\u2029 \ufeff \U000e0041 \x85 end"
)
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029]")


@pytest.fixture
def folder(tmp_path: Path, encoder: Any) -> Path:
    with Index.create(tmp_path / "x.index", encoder) as index:
        texts = {
            "bread": "Knead the dough and let the yeast work",
            "tides": "The moon pulls the water of the sea",
            "rocket": "Fuel burns in the engine of the rocket",
        }
        index.add([Document(uri, text, uri.title(), {"n": len(text), "odd": uri}) for uri, text in texts.items()])
    return tmp_path / "x.index"


def test_hits_by_rank_score_title_place_and_passage(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("search", folder, "what does the moon do", "-k", 2).succeeded()
    first, place, passage, blank, second, *_ = said.out.splitlines()
    assert re.fullmatch(r" 1  0\.\d{3}  Tides", first)
    assert (place, passage, blank) == ("    tides", "    The moon pulls the water of the sea", "")
    assert second.startswith(" 2  0.")
    assert "\x1b" not in said.out  # a pipe gets plain text
    assert said.err == ""


def test_one_question_opens_the_compiled_encoder_for_one_thread(
    likewise: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentences to explain hits by, and several questions, are many texts."""
    threads = []

    def opened(recipe: Recipe, compiled: Path, trusted: bool, given: int | None) -> tuple[Encoder, tuple[str, ...]]:
        threads.append(given)
        return get_query_encoder(recipe, compiled, trusted, given)

    monkeypatch.setattr("search.question_encoder.get_query_encoder", opened)
    likewise("search", folder, "what does the moon do").succeeded()
    assert set(threads) == {1}
    threads.clear()
    likewise("search", folder, "what does the moon do", "--explain").succeeded()
    likewise("search", folder, "-", stdin="what does the moon do").succeeded()
    assert set(threads) == {None}


def test_a_hit_whose_file_is_gone_says_so(likewise: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("tides.txt", "rocks.txt"):
        (tmp_path / name).write_text(f"The moon and the {name}")
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        paths = [str(tmp_path / name) for name in ("tides.txt", "rocks.txt")]
        index.add(
            [Document(path, Path(path).read_text(), path=path) for path in paths], vectors=np.ones((2, 2), np.float32)
        )
    (tmp_path / "rocks.txt").unlink()
    said = likewise("search", tmp_path / "x.index", "moon", "--mode", "words").succeeded()
    assert [line.split("/")[-1] for line in said.out.splitlines()[1::4]] == ["tides.txt:1", "rocks.txt:1 (gone)"]


def test_dates_are_compared_as_dates(likewise: Callable[..., Any], tmp_path: Path) -> None:
    now = datetime.now(UTC)
    written = {"a": "25-Sep-2000", "b": "Sept 26, 2000", "c": "2000/10/1", "d": "10/01/2000"}
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        documents = [
            Document(uri, "t", metadata={"created": day}, modified=(now - timedelta(days=5 * number)).isoformat())
            for number, (uri, day) in enumerate(written.items())
        ]
        index.add(documents, vectors=np.ones((4, 2), np.float32))
    for where, uris in (
        ("created >= 2000-09-26", "bc"),
        ("created = 2000-09", "ab"),
        ('created < "Oct 1, 2000"', "ab"),
        ("modified >= -7d", "ab"),
        ("modified < -1w and not modified < -12d", "c"),
    ):
        said = likewise("list", tmp_path / "x.index", "--where", where).succeeded()
        assert said.out.split() == list(uris), where
    said = likewise("list", tmp_path / "x.index", "--where", "format >= 2000-09-26")
    said.failed(2, "field format cannot be compared with 2000-09-26, as it holds no date")
    assert "; created (text or date)" in likewise("info", tmp_path / "x.index").out
    assert json.loads(likewise("info", tmp_path / "x.index", "--json").out)["dates"] == ["created"]


def test_words_are_set_off_on_a_terminal(
    likewise: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click.utils, "should_strip_ansi", lambda *_: False)
    monkeypatch.setattr("likewise.shell.hits.hits.terminal", lambda: Terminal(80))
    said = likewise("search", folder, "moon", "-k", 1)
    assert "\x1b[1;32mmoon\x1b[0m" in said.out
    assert "\x1b[1mTides\x1b[0m" in said.out
    assert click.unstyle(said.out).splitlines()[2] == "    The moon pulls the water of the sea"


def test_no_colours_where_none_are_wanted_or_understood(
    likewise: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click.utils, "should_strip_ansi", lambda _=None, color=None: color is False)
    monkeypatch.setattr("likewise.shell.hits.hits.terminal", lambda: Terminal(80))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1m" in likewise("search", folder, "moon").out
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in likewise("search", folder, "moon").out
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in likewise("search", folder, "moon").out


def test_files_are_named_by_path_and_line(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "sky.md").write_text("# The sky\n\n" + "cloud " * 40 + "\n\n## Night\n\nstar " + "moon " * 40)
    assert likewise("index", "y.index", "notes").code == 0
    said = likewise("search", "y.index", "moon", "-k", 1)
    assert said.out.splitlines()[1] == "    notes/sky.md:5  Night"
    hit = likewise("search", "y.index", "moon", "--json").json["hits"][0]
    assert (hit["uri"], hit["line"]) == (str(tmp_path / "notes" / "sky.md"), 5)
    text = (tmp_path / "notes" / "sky.md").read_text()
    assert text[hit["start"] : hit["end"]] == hit["text"]
    assert likewise("show", "y.index", "notes/sky.md").code == 0
    assert likewise("list", "y.index").out.startswith("notes/sky.md\t")
    assert likewise("remove", "y.index", "notes/sky.md", "--json").json == {"removed": 1}


def test_questions_from_standard_input(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("search", folder, "-", "-k", 1, "--json", stdin="moon\n\n  dough yeast \n")
    found = [json.loads(line) for line in said.out.splitlines()]
    assert [(each["query"], each["hits"][0]["uri"]) for each in found] == [("moon", "tides"), ("dough yeast", "bread")]
    assert "moon\n 1  " in likewise("search", folder, "-", stdin="moon\n").out
    said = likewise("search", folder, "-", "--mode", "words", "--json", stdin="moon\nwhat is it\n")
    (note,) = json.loads(said.out.splitlines()[1])["notes"]
    assert note.startswith("-:2: ")
    assert said.err.count(note) == 1


def test_a_question_that_is_not_utf_8_is_reported_and_the_others_are_answered(
    likewise: Callable[..., Any], folder: Path
) -> None:
    stdin = b"moon\n\n ab\xff broken\ndough yeast\n"
    report = "likewise: warning: -:3: the question is not UTF-8 at byte 4 and was not asked: convert it\n"
    said = likewise("search", folder, "-", "-k", 1, stdin=stdin)
    assert (said.code, said.err) == (1, report)
    assert ["tides" in said.out.lower(), "bread" in said.out.lower(), "broken" in said.out] == [True, True, False]
    said = likewise("search", folder, "-", "-k", 1, "--json", stdin=stdin)
    answers = [json.loads(line) for line in said.out.splitlines()]
    assert [(each["query"], [hit["uri"] for hit in each["hits"]]) for each in answers] == [
        ("moon", ["tides"]),
        ("ab\N{REPLACEMENT CHARACTER} broken", []),
        ("dough yeast", ["bread"]),
    ]
    assert (said.code, said.err) == (1, report)


def test_no_hits_is_no_failure(likewise: Callable[..., Any], folder: Path) -> None:
    for arguments, says in (
        (["--min-score", "80"], "none reaches the minimum; lower --min-score"),
        (["--where", "n > 9999"], "no document passes"),
    ):
        said = likewise("search", folder, "moon", *arguments).succeeded()
        assert says in said.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", "INDEX", ""], "question is empty"),
        (["search", "INDEX", " \t "], "question is empty"),
        (["search", "INDEX", "moon", "-k", "0"], "k is 0"),
        (["search", "INDEX", "moon", "-k", "-3"], "k is -3"),
        (["search", "INDEX", "moon", "-k", "many"], "many"),
        (["search", "INDEX", "moon", "--min-score", "nan"], "min_score"),
        (["search", "INDEX", "moon", "--where", "nn = 3"], 'near: n'),
        (["search", "INDEX", "moon", "--where", "n = "], "^"),
        (["search", "INDEX", "moon", "--where", 'n = "text"'], "n"),
        (["search", "INDEX", "moon", "--mode", "fuzzy"], "fuzzy"),
        (["search", "INDEX", "caf\udce9"], "not valid Unicode"),
        (["search", "INDEX", "moon", "--where", "odd = '\udce9'"], ""),
        (["search", "INDEX"], "QUERY"),
        (["pairs", "INDEX", "--model", "x"], "are for a FILE"),
        (["similar", "INDEX", "nobody"], "'nobody'"),
        (["show", "INDEX", "nobody"], "'nobody'"),
        (["show", "INDEX", "\udce9"], ""),
        (["remove", "INDEX", "bread", "nobody"], "nothing was removed"),
        (["list", "INDEX", "--where", "nn = 3"], "nn"),
        (["search", "/nothing/here.index", "moon"], "likewise index"),
        (["info", "/etc/passwd"], "is no index"),
        (["index", "INDEX", "/nothing/here"], "/nothing/here"),
        (["serach", "INDEX", "moon"], "serach"),
    ],
    ids=lambda value: " ".join(value).encode("ascii", "replace").decode() if isinstance(value, list) else "",
)  # fmt: skip
def test_wrong_usage_is_said_in_a_line_and_exits_2(
    likewise: Callable[..., Any], folder: Path, arguments: list[str], says: str
) -> None:
    said = likewise(*(str(folder) if argument == "INDEX" else argument for argument in arguments))
    assert (said.code, said.out) == (2, "")
    assert says.casefold() in said.err.casefold()
    assert "Traceback" not in said.err
    assert "internal error" not in said.err


def test_a_long_question_is_cut_with_a_warning(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("search", folder, "moon " * 40, "--json").succeeded()
    assert said.json["hits"][0]["uri"] == "tides"
    assert "warning: the question has 40 tokens, 10 more than the model reads" in said.err


def test_the_index_may_be_named_by_the_environment_or_an_option(
    likewise: Callable[..., Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIKEWISE_INDEX", str(folder))
    assert likewise("search", "moon", "--json").json["hits"][0]["uri"] == "tides"
    assert likewise("info", "--json").json["documents"] == 3
    assert likewise("show", "bread", "--json").json["title"] == "Bread"
    (tmp_path / "a.txt").write_text("another")
    other = tmp_path / "other.index"
    assert likewise("index", tmp_path / "a.txt", "--index", other).code == 0
    assert likewise("info", "--json", f"--index={other}").json["documents"] == 1
    monkeypatch.setenv("LIKEWISE_INDEX", str(other))
    assert likewise("search", "--index", folder, "moon", "--json").json["matched"] == 3
    monkeypatch.delenv("LIKEWISE_INDEX")
    assert likewise("search", "moon", "--index", folder, "--json").json["matched"] == 3
    assert likewise("search", "moon").code == 2


@pytest.mark.parametrize("width", [None, 40, 140])
@pytest.mark.parametrize("command", ["search", "search passages", "similar", "show", "list", "info"])
def test_nothing_of_a_document_acts_on_a_terminal(
    likewise: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, width: int | None
) -> None:
    if width is not None:
        for name in ("hits.hits", "commands.list"):
            monkeypatch.setattr(f"likewise.shell.{name}.terminal", lambda: Terminal(width))
    uri = f"file {NASTY}"
    with Index.open(folder) as index:
        index.add([Document(uri, f"moon {NASTY} moon", NASTY, {NASTY: NASTY, "n": 1}, path=uri, format=NASTY)])
    monkeypatch.setattr(click.utils, "should_strip_ansi", lambda *_: False)
    arguments = {
        "search": ["search", folder, "moon end"],
        "search passages": ["search", folder, f"moon {NASTY}", "--passages"],
        "similar": ["similar", folder, "tides"],
        "show": ["show", folder, uri],
        "list": ["list", folder],
        "info": ["info", folder],
    }[command]
    said = likewise(*arguments).succeeded()
    assert "owned" in said.out
    ours = re.sub(r"\x1b\[\d*(;\d+)*m", "", said.out)  # colours are our own: those of the document are gone
    assert "\x1b[31m" not in said.out
    assert not UNSAFE.findall(ours), [hex(ord(character)) for character in UNSAFE.findall(ours)]
    plain = likewise(*arguments, "--json")
    assert plain.out.isascii()
    assert not UNSAFE.findall(plain.out)


def test_errors_and_the_ledger_clean_what_they_name(
    likewise: Callable[..., Any], folder: Path, tmp_path: Path, lines: Callable[..., str]
) -> None:
    for said in (
        likewise("show", folder, f"no {NASTY}"),
        likewise("search", folder, "moon", "--where", f'n = "{NASTY}"'),
        likewise("search", folder, "moon", "--where", f"{NASTY} = 1"),
        likewise("search", tmp_path / "x\x1b]0;owned\x07", "moon"),
        likewise("search", folder, "moon", "--mode", NASTY),
        likewise("index", folder, tmp_path / "x\x1b]0;owned\x07"),
    ):
        assert said.code == 2
        assert not UNSAFE.findall(said.err), said.err
    source = tmp_path / "nasty"
    source.mkdir()
    (source / "a\x1b]0;owned\x07\u202e.txt").write_text("text")
    (source / "b\x1b[31m.pdf").write_bytes(b"%PDF-1.4 broken")
    (source / "c.jsonl").write_text(lines({"id": NASTY, "text": ""}, {NASTY: 1}))
    said = likewise("index", tmp_path / "y.index", source, "--stream")
    assert (said.code, UNSAFE.findall(said.err + said.out)) == (1, [])
    said = likewise("info", tmp_path / "y.index", "--ledger")
    assert "owned" in said.out
    assert not UNSAFE.findall(said.out)


def test_printable_keeps_what_languages_need_and_the_length() -> None:
    for text in ("naïve café 數據庫 हिन्दी می‌خواهم 👩‍👩‍👧 ﷺ", "tab\tand é"):
        assert printable(text).replace(" ", "") == text.replace("\t", "").replace(" ", "")
    assert printable("da\u200bta\u2060base \u200fש\ufeff") == "da\u200bta\u2060base \u200bש\ufeff"
    for code in range(0x110000):
        category = unicodedata.category(character := chr(code))
        if category in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\u200c\u200d\u00ad\u2060\ufeff":
            assert printable(character) in (" ", "\N{REPLACEMENT CHARACTER}", "\u200b")


def test_a_filter_names_files_as_hits_show_them(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / "notes" / name).write_text(f"text {name}")
    likewise("index", tmp_path / "x.index", tmp_path / "notes")
    monkeypatch.chdir(tmp_path)
    for where, matched in (
        ('path = "notes/a.txt"', 1),
        ('not uri = "notes/a.txt"', 2),
        ('path in ("notes/a.txt", "notes/b.txt") and size > 0', 2),
        ('path = "a.txt"', 0),
    ):
        assert likewise("search", "x.index", "text", "--where", where, "--json").json["matched"] == matched
    assert likewise("list", "x.index", "--where", 'path = "notes/b.txt"').out == "notes/b.txt\tb\n"


def test_a_hit_above_the_working_folder_has_the_shorter_path(
    likewise: Callable[..., Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "notes" / "deep" / "down").mkdir(parents=True)
    (here / "notes" / "pond.txt").write_text("frogs live in the pond")
    assert likewise("index", "notes").code == 0
    for folder, path in (
        (here, "notes/pond.txt"),
        (here / "notes", "pond.txt"),
        (here / "notes" / "deep", "../pond.txt"),
        (here / "notes" / "deep" / "down", "../../pond.txt"),
    ):
        monkeypatch.chdir(folder)
        assert likewise("search", "frogs").out.splitlines()[1] == f"    {path}:1"
        assert likewise("show", path).code == 0


PHRASES = [
    # the arguments after INDEX, and the documents of the hits; None without conditions
    (['"the dough" -moon'], ["bread"]),
    (["what +moon does -dough"], ["tides"]),
    (["--", "rises", "-moon", "-fuel"], ["bread"]),
    (["--literal", '"the dough" -moon'], None),
    (["--literal", "--", "rises", "-moon"], None),
    (["rises", "+moon"], None),
    (["--json", '"the dough" -moon'], None),
    (["-l", "sea -dough +the"], ["rocket", "tides"]),
]


DASHES_INSIDE = [
    # questions with a dash before a plain word, and the words that a note names
    ("what -moon -dough does", "-moon, -dough"),
    ("flour -dough and the sea", "-dough"),
    ("is a -fuel tank heavy", "-fuel"),
    ('the -"moon" at sea', '-"moon"'),
    ("moon -dough, or the sea?", "-dough,"),
    ("what does tar -xzf do", "-xzf"),
    ("was it -40 in siberia", "-40"),
    ("compile -std=c++20 with gcc", "-std=c++20"),
    ("the moon -dough — and the sea", "-dough"),
    ("water -moon --verbose", "-moon"),
]


@pytest.mark.parametrize(("question", "words"), DASHES_INSIDE)
def test_a_dash_inside_a_question_excludes_nothing(
    likewise: Callable[..., Any], folder: Path, question: str, words: str
) -> None:
    said = likewise("search", folder, question).succeeded()
    assert [uri for uri in ("bread", "rocket", "tides") if uri not in said.out.lower()] == []
    assert f"warning: read as words: {words}; to leave out documents with a word, end the question with -" in said.err
    assert "read as conditions" not in said.err


def test_a_word_that_a_document_holds_with_its_dash_is_asked(likewise: Callable[..., Any], folder: Path) -> None:
    with Index.open(folder) as index:
        index.add([Document("flags", "Unpack with tar -xzf at −40")])
    for arguments in (["unpack -xzf"], ["unpack -40"], ["--", "unpack", "-xzf"]):
        said = likewise("search", folder, *arguments).succeeded()
        assert ("tar -xzf" in said.out, "read as words: -" in said.err) == (True, True)
    said = likewise("search", folder, 'unpack -"xzf"').succeeded()
    assert 'read as conditions: -"xzf"' in said.err
    assert "tar -xzf" not in said.out


@pytest.mark.parametrize(("arguments", "expected"), PHRASES)
def test_conditions_are_read_in_one_argument_or_after_dashes(
    likewise: Callable[..., Any], folder: Path, arguments: list[str], expected: list[str] | None
) -> None:
    said = likewise("search", folder, *arguments).succeeded()
    found = [uri for uri in ("bread", "rocket", "tides") if re.search(uri, said.out, re.IGNORECASE)]
    assert found == (expected or ["bread", "rocket", "tides"])
    assert ("read as conditions: " in said.err) == (expected is not None)
    assert ("; --literal asks for the text as it stands" in said.err) == (expected is not None)


def test_questions_of_standard_input_have_no_conditions(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("search", folder, "-", stdin='"the dough" -moon\n')
    assert "Tides" in said.out
    assert said.err == ""


def test_conditions_that_leave_nothing_are_named(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("search", folder, '"the doughs" yeast').succeeded()
    assert said.out == "nothing to rank: the index is empty, or no document passes the filter and the conditions\n"
    assert 'read as conditions: "the doughs"; --literal asks for the text as it stands' in said.err


def test_each_condition_is_explained(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("search", folder, '"moon PULLS" +tides -dough', "--explain")
    assert '    condition "moon PULLS" here as moon pulls\n' in said.out
    assert "    condition +tides in the title or elsewhere in the document\n" in said.out
    assert "    condition -dough is in none of it\n" in said.out


def test_a_word_with_a_hyphen_after_a_question_is_advised(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("search", folder, "the sea", "-dough")
    assert said.code == 2
    advice = re.search(r"make the question one argument, ('[^']*'), or put -- before it", said.err)
    assert advice, said.err
    assert shlex.split(advice[1]) == ["the sea -dough"]
    for arguments in (shlex.split(advice[1]), ["--", "sea", "-dough"]):
        answered = likewise("search", folder, *arguments)
        assert "Bread" not in answered.out
        assert "Tides" in answered.out
    assert "put -- before it" not in likewise("search", folder, "-dough").err
    said = likewise("search", folder, "--mode=words", "the", "sea", "-k", "1", "-dough", "--explain", "--where", "a b")
    assert "make the question one argument, 'the sea -dough' --mode=words -k 1 --explain --where 'a b', or" in said.err


@pytest.mark.parametrize("question", ["-water", '-"a phrase" tea'])
def test_a_question_that_begins_with_a_hyphen_is_told_how_to_be_asked(
    likewise: Callable[..., Any], folder: Path, question: str
) -> None:
    """It was taken for a file: if -water is a file, write ./-water."""
    said = likewise("search", folder, question)
    assert said.code == 2
    assert f"(a QUERY that begins with a hyphen follows --, as in -- {shlex.quote(question)})" in said.err
    assert likewise("search", folder, "--", question).code == 0
