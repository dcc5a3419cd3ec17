"""Names of files whose accents are one character with their letter, or two as macOS writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from parts.shell.test_default_index import enter

COMPOSED, DECOMPOSED = (normalize(form, "Café/Übung é.txt") for form in ("NFC", "NFD"))
MIXED = normalize("NFC", "Café") + "/" + normalize("NFD", "Übung é.txt")


@pytest.mark.parametrize("stored", [COMPOSED, DECOMPOSED, MIXED])
def test_a_name_is_found_in_either_form(
    tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, stored: str
) -> None:
    folder = enter(tmp_path, likewise, monkeypatch)
    (folder / stored).parent.mkdir()
    (folder / stored).write_text("a comet")
    likewise("index", ".").succeeded()
    uri = str(folder / stored)
    for typed in (COMPOSED, DECOMPOSED):
        for name in (typed, typed.partition("/")[2]):
            assert likewise("show", name, "--json").succeeded().json["uri"] == uri
        for where in (f'uri = "{folder / typed}"', f'path in ("{typed}")', f'under "{typed.partition("/")[0]}"'):
            assert likewise("list", "--where", where, "--json").succeeded().json["uri"] == uri
        assert uri not in likewise("list", "--where", f'uri != "{folder / typed}"', "--json").succeeded().out
    assert uri not in likewise("similar", COMPOSED).succeeded().out
    assert likewise("remove", COMPOSED).succeeded().out == "removed 1 document\n"


def test_where_both_forms_exist_the_exact_name_is_meant(
    tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = enter(tmp_path, likewise, monkeypatch)
    for name in (COMPOSED, DECOMPOSED):
        (folder / name).parent.mkdir()
        (folder / name).write_text(name)
    likewise("index", ".").succeeded()
    for name in (COMPOSED, DECOMPOSED):
        assert likewise("show", name, "--json").succeeded().json["uri"] == str(folder / name)
    said = likewise("show", normalize("NFD", "Übung é.txt"))
    assert (said.code, "2 documents end with this" in said.err) == (2, True)
