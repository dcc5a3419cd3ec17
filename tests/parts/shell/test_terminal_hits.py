"""Hits on a terminal: broken at words, each address once, folded, linked; and paths alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from unicodedata import combining, east_asian_width

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from likewise.shell.hits.hits import _position
from likewise.shell.snippets import snippet
from likewise.shell.terminal.output import printable
from likewise.shell.terminal.terminal import Terminal, link_address, short_path
from search import Hit


@pytest.fixture
def folder(tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with notes that are in its index."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    notes = tmp_path / "work" / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "moon.txt").write_text("The moon pulls the water of the sea, twice a day and at full moon the most.")
    (notes / "copy.txt").write_text("The moon pulls the water of the sea, twice a day and at full moon the most!")
    (notes / "deep" / "stars.md").write_text(
        "# The sky\n\n" + "cloud " * 40 + "\n\n## Night stars\n\nstar light shines far away"
    )
    (notes / "deep" / "moon.txt").write_text("dough and yeast")
    monkeypatch.chdir(notes.parent)
    (notes.parent / ".likewise.toml").write_text('mode = "words"')
    assert likewise("index", "notes").code == 0
    return notes.parent


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes standard output a terminal of a width, without links."""

    monkeypatch.setenv("FORCE_HYPERLINK", "0")

    def make(width: int) -> None:
        monkeypatch.setattr("likewise.shell.hits.hits.terminal", lambda: Terminal(width))

    return make


def test_lines_are_broken_at_words_and_each_address_is_written_once(
    likewise: Callable[..., Any], folder: Path, screen: Callable[..., None]
) -> None:
    screen(46)
    said = likewise("search", "moon", "water", "-k", 1)
    assert said.out.splitlines()[1:] == [
        "    The moon pulls the water of the sea, twice",
        "    a day and at full moon the most.",
        "    and 1 more like this: notes/copy.txt",
        "",
    ]
    assert re.fullmatch(r" 1  \d\.\d{3}  notes/moon\.txt:1", said.out.splitlines()[0])
    assert said.out.count("moon.txt") == 1
    screen(140)
    assert "    The moon pulls the water of the sea, twice a day and at full moon the most.\n" in likewise(
        "search", "moon", "water", "-k", 1).out  # fmt: skip


def test_a_row_and_an_attached_table_are_shown_as_such_and_the_header_of_a_mail_is_not(
    likewise: Callable[..., Any], folder: Path
) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "ada@example.org", "bo@example.org", "Lamps"
    mail.set_content("Please buy some bulbs, now.")
    mail.add_attachment('lamp,"price, net"\nbright lamp,5\n', subtype="csv", filename="lamps.csv")
    (folder / "notes" / "lamps.eml").write_bytes(bytes(mail))
    (folder / "notes" / "shelf.csv").write_text("id,name,colour\nS1,oak shelf,brown\n")
    assert likewise("index", "notes").code == 0
    for question, shown in (
        ("bulbs", "Please buy some bulbs, now. lamp | price, net / bright lamp | 5"),
        ("oak", "name: oak shelf · colour: brown"),
    ):
        assert likewise("search", question, "-k", 1, "--passages").out.splitlines()[2:] == [f"    {shown}", ""]


def test_a_heading_is_not_repeated(likewise: Callable[..., Any], folder: Path, screen: Callable[..., None]) -> None:
    screen(80)
    lines = likewise("search", "star", "light", "-k", 1, "--passages").out.splitlines()
    assert lines[0].endswith("  The sky")
    assert lines[1:3] == ["    notes/deep/stars.md:5  Night stars", "    star light shines far away"]


def test_in_a_pipe_nothing_is_broken_folded_or_linked(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("search", "moon", "water", "-k", 2)
    assert "\x1b" not in said.out
    assert "like this" not in said.out
    assert said.out.count("    The moon pulls the water of the sea, twice a day and at full moon the most") == 2


@pytest.mark.parametrize(("format_", "place"), [("pdf", ", page 3"), ("pptx", ", slide 3"), ("odp", ", slide 3")])
def test_a_slide_is_not_called_a_page(format_: str, place: str) -> None:
    assert _position(Hit("a", "", "text", 0, 4, 0.5, None, page=3, format=format_)) == place


def test_links_lead_to_the_file(
    likewise: Callable[..., Any], folder: Path, screen: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen(120)
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    said = likewise("search", "star", "light", "-k", 1)
    assert re.search(rf"\x1b\]8;id=[\d-]+;file://[^/]+{folder}/notes/deep/stars\.md\x1b\\", said.out), said.out
    assert said.out.count("\x1b]8;;\x1b\\") == 1
    assert str(link_address("/a\x1b]\x07 b")).endswith("/a%1B%5D%07%20b")
    assert link_address(None) is None


@pytest.mark.parametrize(
    ("term", "forced", "linked"),
    [
        ("xterm-256color", None, True),
        ("tmux-256color", None, False),
        ("screen", "1", True),
        ("xterm-kitty", "0", False),
    ],
)
def test_links_can_be_switched_off(
    monkeypatch: pytest.MonkeyPatch, term: str, forced: str | None, linked: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("FORCE_HYPERLINK", raising=False)
    if forced:
        monkeypatch.setenv("FORCE_HYPERLINK", forced)
    assert (link_address("/a") is not None) == linked


def test_hybrid_hits_show_their_cosine(likewise: Callable[..., Any], folder: Path) -> None:
    first = likewise("search", "moon", "water", "-k", 1, "--mode", "hybrid").out.splitlines()[0]
    assert re.match(r" 1  \d\.\d{3} \(cosine 0\.\d{3}\)  ", first)
    assert "cosine" not in likewise("search", "moon", "water", "-k", 1, "--mode", "dense").out


def test_no_answer_is_said_below_the_hits(
    likewise: Callable[..., Any], folder: Path, screen: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from search.searcher import Searcher

    answer = Searcher.answer
    monkeypatch.setattr(Searcher, "answer", lambda self, query: replace(answer(self, query), answered=False))
    screen(200)
    said = likewise("search", "moon", "-k", 1)
    assert said.out.splitlines()[-1].startswith("nothing here seems to answer this")
    assert not said.err
    monkeypatch.setattr("likewise.shell.hits.hits.terminal", lambda: None)
    said = likewise("search", "moon", "-k", 1)
    assert "nothing here" not in said.out
    assert "nothing here seems to answer this" in said.err


def test_paths_alone(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("search", "moon", "water", "-k", 2, "-l", "--passages")
    assert sorted(said.out.splitlines()) == ["notes/copy.txt", "notes/moon.txt"]
    assert likewise("search", "star", "-l", "--json").code == 2


def test_neighbouring_passages_are_printed_around_a_hit(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = " ".join(f"{word}{number}" for word in ("one", "two", "three", "four", "five") for number in range(20))
    Path("long.txt").write_text(text)
    assert likewise("index", "x.index", "long.txt").code == 0
    said = likewise("search", "x.index", "three5", "--mode", "words", "-k", 1, "-C", 1, "--json").json["hits"][0]
    around = "".join([*said["before"], said["text"], *said["after"]])
    assert around in text
    assert len(said["before"]) == len(said["after"]) == 1
    assert said["text"] in text
    assert around != said["text"]
    printed = likewise("search", "x.index", "three5", "--mode", "words", "-k", 1, "-C", 9).out.splitlines()[2:-1]
    assert " ".join(line.strip() for line in printed) == text


def test_show_takes_the_end_of_a_path(likewise: Callable[..., Any], folder: Path) -> None:
    assert "shines far away" in likewise("show", "stars.md").out
    assert "dough" in likewise("show", "deep/moon.txt").out
    said = likewise("show", "moon.txt")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[1:] == ["  notes/deep/moon.txt", "  notes/moon.txt"]
    assert likewise("show", "tars.md").code == 2  # names of folders and files, whole
    assert likewise("similar", "stars.md", "-k", 1).code == 0
    assert likewise("remove", "stars.md").code == 2  # not where something is lost


def test_the_window_counts_a_plural_and_its_singular_once() -> None:
    far = (
        "Loaves and a loaf: loaf, loaves. "
        + "filler " * 40
        + "filler. Bread goes stale on the table. "
        + "filler " * 40
    )
    words = ["Loaves", "loaf", "loaves", "Bread", "stale"]
    stems = {"loaves": "loaf"}

    def stem(word: str) -> str:
        return stems.get(word.casefold(), word.casefold())

    assert snippet(far, words, 120, stem=stem).text.startswith("… Bread goes stale on the table.")
    assert snippet(far, [], 120, sentence="Bread goes  stale on the table.").text.startswith("… Bread goes stale")


PRINTABLE = st.text(max_size=300).map(lambda text: " ".join(printable(text).split()))
SCRIPTS = st.text("ab é茶の한ｗ🎉\u0301ا", max_size=300).map(lambda text: " ".join(text.split()))


@given(PRINTABLE | SCRIPTS, st.integers(4, 60))
def test_no_character_is_lost_in_breaking_lines(text: str, width: int) -> None:
    lines = Terminal(width).lines(Text(text))
    assert "".join(lines).replace(" ", "") == "".join(text.split())


def columns(text: str) -> int:
    """The columns that a text takes on a terminal, by the tables of Unicode."""
    return sum(1 + (east_asian_width(each) in "WF") - bool(combining(each)) for each in text)


@given(SCRIPTS, st.integers(4, 60))
def test_no_line_is_wider_than_the_terminal_and_only_wider_words_are_broken(text: str, width: int) -> None:
    lines = Terminal(width).lines(Text(text))
    assert all(columns(line) <= width for line in lines), lines
    words = [word for word in text.split() if columns(word) <= width]
    assert not [word for word in words if word not in " ".join(lines).split()]


def test_wide_characters_take_two_columns_at_80_and_140() -> None:
    for width, fit in ((80, 38), (140, 68)):
        lines = Terminal(width).lines(Text("茶" * 100), "    ")
        assert lines == ["    " + "茶" * count for count in (fit, *((fit,) if width == 80 else ()), 100 % fit)]


def test_an_ellipsis_follows_the_last_line_of_a_long_title() -> None:
    assert Terminal(12).lines(Text("one two three four five"), "1  ", most=2) == ["1  one two", "   three …"]
    assert Terminal(12).lines(Text("one two three"), "1  ", most=2) == ["1  one two", "   three"]


def test_marks_go_over_the_end_of_a_line() -> None:
    text = Text("aa bb cc")
    text.stylize("bold green", 3, 8)
    lines = Terminal(5).lines(text)
    assert [click.unstyle(line) for line in lines] == ["aa bb", "cc"]
    assert lines[1] == "\x1b[1;32mcc\x1b[0m"


def test_the_shortest_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home" / "work" / "deep" / "down").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home" / "work")
    assert short_path(str(tmp_path / "home" / "work" / "a.txt")) == "a.txt"
    assert short_path(str(tmp_path / "home" / "a.txt")) == "~/a.txt"
    assert short_path("/x") == "/x"


def test_a_record_without_a_title_is_named_once(
    likewise: Callable[..., Any], folder: Path, screen: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("wines.csv").write_text("id,text,title\nw1,a heavy red with tannin,\nw2,a crisp white with oysters,White\n")
    assert likewise("index", "wines.index", "wines.csv").code == 0
    head, *lines = likewise("search", "wines.index", "tannin").out.splitlines()
    assert head.endswith("  w1")
    assert lines == ["    in wines.csv", "    a heavy red with tannin", ""]
    titled = likewise("search", "wines.index", "oysters").out.splitlines()
    assert titled[0].endswith("  White")
    assert titled[1] == "    w2 in wines.csv"
    assert likewise("list", "wines.index").out == "w1\t\nw2\tWhite\n"
    monkeypatch.setattr("likewise.shell.commands.list.terminal", lambda: Terminal(60))
    assert click.unstyle(likewise("list", "wines.index").out) == "w1\ta heavy red with tannin\nw2\tWhite\n"
    Path("long.csv").write_text("id,text\nzh," + "茶" * 500 + "\nen," + "tea " * 500 + "\nempty,.\n")
    assert likewise("index", "long.index", "long.csv").code == 0
    assert click.unstyle(likewise("list", "long.index").out).splitlines() == [
        "zh\t" + "茶" * 30 + " …",
        "en\t" + "tea " * 15 + "…",
        "empty\t.",
    ]
    screen(60)
    head, *lines = likewise("search", "wines.index", "tannin").out.splitlines()
    assert head.endswith("  w1  in wines.csv")
    assert lines == ["    a heavy red with tannin", ""]
    screen(25)  # no room beside the score
    head, *lines = likewise("search", "wines.index", "tannin").out.splitlines()
    assert head.endswith("  w1")
    assert lines[0] == "    in wines.csv"
