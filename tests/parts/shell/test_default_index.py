"""Every form of arguments with and without `.likewise/`, recorded sources, and configuration files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer import Index
from indexer.sources import ReadOptions
from indexer.sources.folders.recorded import groups, record
from indexer.sources.folders.source import open_sources
from indexer.stores.addresses.open import holds_store


@pytest.fixture
def folder(tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two notes and an index of its own elsewhere; the user has no configuration."""
    return enter(tmp_path, likewise, monkeypatch)


def enter(path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    here = path / "home" / "here"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(path / "configuration"))
    new = not here.exists()
    (here / "notes").mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(here)
    if new:
        (here / "notes" / "moon.txt").write_text("The moon pulls the water")
        (here / "notes" / "bread.txt").write_text("Knead the dough and let the yeast work")
        (path / "far.txt").write_text("A far star")
        assert likewise("index", here / "far.index", path / "far.txt").code == 0
    return here


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of the tests that only read: without a default index, and with one."""
    return tmp_path_factory.mktemp("without"), tmp_path_factory.mktemp("with")


MOON, BREAD, FAR = "notes/moon.txt", "notes/bread.txt", "far.txt"
UNKNOWN = "and there is no .likewise in this folder or above it"
NO_INDEX = "which INDEX? There is no .likewise in this folder or above it"
SWAPPED = "INDEX comes first"
TWO = 'there is no index "none.index", and '


@pytest.mark.parametrize(
    ("arguments", "without", "with_default"),
    [
        ("search moon", UNKNOWN, MOON),
        ("search the dough and yeast", UNKNOWN, BREAD),
        ("search far.index moon", FAR, FAR),
        ("search far.index the moon and sea", FAR, FAR),
        ("search -k 1 far.index moon", FAR, FAR),
        ("search --mode words dough", UNKNOWN, BREAD),
        ("search moon far.index", SWAPPED, SWAPPED),
        ("search the moon none.index", SWAPPED, SWAPPED),
        ("search moon far/none.index", "far/none.index belongs to it", "far/none.index belongs to it"),
        ("search moon postgresql://nobody@localhost:1/none", SWAPPED, SWAPPED),
        ("search none.index far.index", TWO, TWO),
        ("search none.index postgresql://nobody@localhost:1/none", TWO, TWO),
        ("search none.index the moon postgresql://nobody@localhost:1/none", TWO, TWO),
        ("similar none.index postgresql://nobody@localhost:1/none", TWO, TWO),
        ("search 'the moon none.index'", UNKNOWN, MOON),
        ("search far.index moon none.index", FAR, FAR),
        ("search none.index moon", "there is no index here", "there is no index here"),
        ("search", NO_INDEX, "Missing argument 'QUERY'"),
        ("search far.index", "Missing argument 'QUERY'", "Missing argument 'QUERY'"),
        ("search far.index 'two words' moon", "not one question", "not one question"),
        ("search 'two words' moon", UNKNOWN, "not one question"),
        ("search notes 'two words'", UNKNOWN, "notes is a folder but not an index; likewise index NAME.index notes"),
        ("search moon --index far.index", FAR, FAR),
        ("search postgresql://nobody@localhost:1/none moon", "postgresql", "postgresql"),
        ("show notes/moon.txt", NO_INDEX, "The moon pulls"),
        ("show far.index notes/moon.txt", "notes/moon.txt", "notes/moon.txt"),
        ("show notes/moon.txt far.index", SWAPPED, SWAPPED),
        ("similar notes/moon.txt", NO_INDEX, BREAD),
        ("list", NO_INDEX, MOON),
        ("list far.index", FAR, FAR),
        ("list notes", "there is no index here", "there is no index here"),
        ("info", NO_INDEX, ".likewise: 2 documents"),
        ("check", NO_INDEX, "ok"),
        ("status", NO_INDEX, ".likewise: 2 documents of 1 source; files: 2 unchanged"),
        ("update", NO_INDEX, "2 unchanged"),
        ("index far.index", "far.index is an index", "far.index is an index"),
        ("index notes far.index", SWAPPED, SWAPPED),
        ("index", "name a SOURCE", "name a SOURCE"),
        ("pairs", "name a FILE or an INDEX", "1 pair of 2"),
    ],
)
def test_every_form_of_arguments_that_reads(
    likewise: Callable[..., Any],
    places: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    without: str,
    with_default: str,
) -> None:
    words = shlex.split(arguments)
    enter(places[0], likewise, monkeypatch)
    said = likewise(*words)
    assert without in said.out.split("\n\n")[0] + said.err, (said.out, said.err)
    if without in (UNKNOWN, NO_INDEX, SWAPPED, TWO):
        assert said.code == 2
    here = enter(places[1], likewise, monkeypatch)
    if not (here / ".likewise").exists():
        assert likewise("index", "notes").code == 0
    said = likewise(*words)
    best = said.out.split("\n\n")[0] if words[0] in ("search", "similar") else said.out
    assert with_default in best + said.err, (said.out, said.err)


@pytest.mark.parametrize(
    ("arguments", "without", "with_default"),
    [
        ("remove ./notes/moon.txt", NO_INDEX, "removed 1 document"),
        ("index notes", "2 indexed", "2 unchanged"),
        ("index far.index notes", "2 indexed", "2 unchanged"),
        ("index new.index notes", "2 indexed", "2 unchanged"),
        ("index missing", "no such file or folder", "no such file or folder"),
        ("index .", "2 indexed", "2 unchanged"),
    ],
)
def test_every_form_of_arguments_that_writes(
    likewise: Callable[..., Any], folder: Path, arguments: str, without: str, with_default: str
) -> None:
    words = arguments.split()
    said = likewise(*words)
    assert without in said.out + said.err
    in_default = words[0] == "index" and words[1] in ("notes", ".")
    assert (folder / ".likewise").exists() == in_default
    if not in_default:
        assert likewise("index", "notes").code == 0
    said = likewise(*words)
    assert with_default in said.out + said.err
    with Index.open(folder / ".likewise") as index:  # nothing of an index is a document
        assert [document for document in index if Path(document.uri).parent != folder / "notes"] == []


def test_the_nearest_index_above_is_meant(
    likewise: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert likewise("index", "notes").code == 0
    monkeypatch.chdir(folder / "notes")
    assert "moon.txt:1" in likewise("search", "moon", "-k", 1).out
    (folder / "notes" / "star.txt").write_text("A star")
    assert likewise("index", "star.txt", "--json").json["indexed"] == 1
    assert not (folder / "notes" / ".likewise").exists()
    monkeypatch.setenv("LIKEWISE_INDEX", str(folder / "far.index"))
    assert "far.txt" in likewise("search", "how", "do", "stars", "work").out


def test_an_empty_folder_of_that_name_is_not_an_index(likewise: Callable[..., Any], folder: Path) -> None:
    (folder / ".likewise").mkdir()
    assert (likewise("search", "moon").code, likewise("index", "notes").code) == (2, 0)
    assert (
        likewise("index", "x.index", ".likewise", "--json").json
        == likewise("index", "x.index", ".likewise", "--json").json
    )
    with Index.open(folder / "x.index") as index:
        assert len(index) == 0


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("serch", "did you mean search?"),
        ("udpate", "did you mean update?"),
        ("how do vaccines work", 'likewise search "how do vaccines work"'),
        ("xyzzy", "likewise --help --all"),
    ],
)
def test_a_mistyped_command_gets_a_hint(likewise: Callable[..., Any], typed: str, hint: str) -> None:
    said = likewise(typed, "moon")
    assert said.code == 2
    assert f'there is no command "{typed}"' in said.err
    assert hint in said.err


def test_options_survive_being_recorded(tmp_path: Path) -> None:
    options = ReadOptions(glob=("*.md",), max_file_mb=1.5, id_field="i", text_field="t", rehash=True, ignore=False)
    sources = record([], open_sources([str(tmp_path)], options, holds_store), options)
    ((read, names),) = groups(sources)
    assert (names, read) == ([str(tmp_path)], ReadOptions(**{**_members(options), "rehash": False}))
    assert json.loads(sources[0].options)["max_file_mb"] == 1.5
    again = record(sources, open_sources([str(tmp_path)], options, holds_store), options)
    assert again == sources


def _members(options: ReadOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in options.__dataclass_fields__}


def test_configuration_of_a_user_and_of_a_folder(
    likewise: Callable[..., Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    likewise("index", "notes")
    user = tmp_path / "configuration" / "likewise" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text('mode = "words"\nk = 1\nlanguage = "de"\n')
    answer = likewise("search", "the moon dough", "--json").json
    assert (answer["mode"], len(answer["hits"])) == ("words", 1)
    (folder.parent / ".likewise.toml").write_text('mode = "hybrid"')
    assert likewise("search", "moon", "--json").json["mode"] == "hybrid"
    assert likewise("search", "moon", "--mode", "dense", "--json").json["mode"] == "dense"
    assert len(likewise("similar", "notes/moon.txt", "--json").json["hits"]) == 1
    assert likewise("index", "notes").code == 0  # an index that exists keeps its language
    assert likewise("index", "new.index", "notes").code == 0
    with Index.open("new.index") as new, Index.open(".likewise") as old:
        assert (new._core.settings.language, old._core.settings.language) == ("de", "en")


def test_a_program_of_the_user_reads_what_no_reader_knows(
    likewise: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    program = tmp_path / "ocr"
    program.write_text("#!/bin/sh\necho The lantern of ${2##*/}\n")
    program.chmod(0o755)
    (folder / "notes").joinpath("scan.png").write_bytes(b"\0")
    assert likewise("index", "notes").code == 0
    user = tmp_path / "configuration" / "likewise" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text(f'k = 1\n[extractors.".png"]\ncommand = ["{program}", "--", "{{file}}"]\nseconds = 9\n')
    assert likewise("status", "--json").json["outdated"] == [str(folder / "notes" / "scan.png")]
    assert likewise("update").code == 0
    (hit,) = likewise("search", "lantern", "--mode", "words", "--json").json["hits"]
    assert (hit["text"], hit["metadata"]["extracted_by"]) == ("The lantern of scan.png", "ocr")
    assert likewise("status", "--json").json["outdated"] == []
    line = f".png: {program} -- '{{file}}' (up to 9 s, 2048 MB of memory, 64 MB of output)"
    assert line in likewise("doctor", ".likewise").out
    user.write_text(f'[extractors]\n".png" = ["{program}"]\n')
    for command in (("index", "notes"), ("index", "new.index", "notes"), ("update",), ("watch", "notes"), ("doctor",)):
        said = likewise(*command)
        expected = f'{user}: extractor of ".png": no argument has "{{file}}"'
        assert (said.code, expected in said.err + said.out) == (1 if command == ("doctor",) else 2, True), said
    assert not Path("new.index").exists()
    assert likewise("search", "lantern", "--mode", "words").code == 0
    user.unlink()
    (folder / ".likewise.toml").write_text(f'[extractors]\n".png" = ["{program}", "{{file}}"]\n')
    said = likewise("index", "notes")
    expected = "extractors name programs, and this file may come with somebody else's folder: set them in"
    said.failed(2, expected)


@pytest.mark.parametrize(
    "text", ["extractors = 3", '[extractors]\n".png" = 3', '[extractors.".png"]\ncommand = ["/x", "{file}"]\nhours = 1']
)
def test_a_wrong_table_of_programs_is_named(
    likewise: Callable[..., Any], folder: Path, tmp_path: Path, text: str
) -> None:
    user = tmp_path / "configuration" / "likewise" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text(text)
    likewise("index", "notes").failed(2, f"{user}: extractors", "give a ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour = true", "unknown key colour"),
        ("trust_remote_code = true", "trust_remote_code cannot be set in a file"),
        ("[trust]\ncode = true", "trust cannot be set in a file"),
        ('mode = "fuzzy"', "mode is 'fuzzy': give one of dense"),
        ("k = true", "k is True"),
        ("k = 0", "k is 0"),
        ("model = 3", "model is 3"),
        ("mode = ", "cannot be read as TOML"),
    ],
)
def test_a_wrong_configuration_is_named(likewise: Callable[..., Any], folder: Path, text: str, says: str) -> None:
    (folder / ".likewise.toml").write_text(text)
    likewise("search", "far.index", "moon").failed(2, f"{folder / '.likewise.toml'}: {says}")
    assert likewise("search", "--help").code == 0
