"""The border between the engine and the parts round it, as parts.toml draws it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from drawn_parts import ENGINE, OWNERS, PARTS, PUBLIC_PATHS, part_of
from source_imports import MODULES, ROOT, edges
from test_rooms import circles

from indexer import BadInput, doors

DOORS = "indexer.doors"


def crossings() -> Iterator[tuple[str, str]]:
    """Every import of a module of another part."""
    for module, file in MODULES.items():
        if module.partition(".")[0] != "likewise" or part_of(module) != ENGINE:
            yield from ((module, other) for other in edges(file) if part_of(other) != part_of(module))


def test_a_module_belongs_to_the_nearest_part_that_names_it() -> None:
    assert part_of("likewise.service.commands.serve") == "service"
    assert part_of("likewise.shell.commands.index") == "shell"
    assert part_of("indexer.stores.port") == ENGINE


def test_each_part_is_a_folder_of_likewise() -> None:
    folders = {path.parent.name for path in (ROOT / "likewise").glob("*/__init__.py")}
    assert folders == set(PARTS)


def test_only_the_public_paths_of_the_engine_import_a_part() -> None:
    importing = {(module, part_of(other)) for module, other in crossings() if part_of(module) == ENGINE}
    assert importing == set(PUBLIC_PATHS.items())


def test_no_module_imports_a_public_path_of_a_part() -> None:
    """Parts import each other by their own names."""
    importing = [(module, other) for module, file in MODULES.items() for other in edges(file) & PUBLIC_PATHS.keys()]
    assert importing == []


@pytest.mark.parametrize("path", [path for path, part in PUBLIC_PATHS.items() if part != "adapters"])
def test_a_public_path_gives_the_names_of_its_part(path: str) -> None:
    given, part = importlib.import_module(path), importlib.import_module(f"likewise.{PUBLIC_PATHS[path]}")
    assert given.__all__
    assert all(getattr(given, name) is getattr(part, name) for name in given.__all__)


def test_only_the_doors_of_the_engine_name_a_module_of_a_part_in_a_string() -> None:
    owned = re.compile(r"[\"'](?:" + "|".join(map(re.escape, OWNERS)) + r")[.:\"']")
    engine = [
        file for module, file in MODULES.items() if part_of(module) == ENGINE and module not in (DOORS, *PUBLIC_PATHS)
    ]
    naming = [file.as_posix() for file in engine if owned.search((ROOT / file).read_text())]
    assert naming == []


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_the_engine_and_the_parts_that_it_names(part: str) -> None:
    imported = {part_of(other) for module, other in crossings() if part_of(module) == part}
    assert sorted(imported - {ENGINE}) == PARTS[part]["imports"]


@pytest.mark.parametrize("part", PARTS)
def test_the_readme_of_a_part_says_what_it_may_import_and_its_ceiling(part: str) -> None:
    readme = (ROOT / "likewise" / part / "README.md").read_text(encoding="utf-8")
    may_import = ", ".join(("the engine", *(f"`{other}`" for other in PARTS[part]["imports"])))
    assert readme.startswith(f"# {part}\n\n")
    assert readme.endswith(f"\n\nMay import: {may_import}.\n\nCeiling: {PARTS[part]['ceiling']:,} lines of code.\n")


@pytest.mark.parametrize("part", PARTS)
def test_the_readme_of_a_part_has_a_line_for_every_file_and_folder(part: str) -> None:
    folder = ROOT / "likewise" / part
    readme = (folder / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[\w./]+`(?:, )?)+) \| .+ \|$", readme, re.MULTILINE)
    files = [file.name for file in folder.glob("*.py") if file.name != "__init__.py"]
    folders = [f"{inner.name}/" for inner in folder.iterdir() if inner.is_dir() and inner.name != "__pycache__"]
    assert sorted(re.findall(r"`([\w./]+)`", " ".join(rows))) == sorted([*files, *folders])


def test_parts_import_each_other_in_no_circle() -> None:
    found = circles({part: set(drawn["imports"]) for part, drawn in PARTS.items()})
    assert sorted(map(sorted, found)) == []


def test_a_door_gives_what_its_table_names_and_nothing_if_the_part_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"parts": {"here": "indexer.errors:count_of", "whole": "indexer.errors", "gone": "likewise.gone.door:open"}}
    monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, **table})
    assert doors.find("parts", "here")(2, "part") == "2 parts"
    assert doors.find("parts", "whole").count_of(1, "part") == "1 part"
    assert doors.find("parts", "gone") is None
    assert doors.find("parts", "nothing") is None
    with pytest.raises(BadInput, match=r"^asking needs a part of likewise that is not installed \(gone\): pip install"):
        doors.require("parts", "gone", "asking")


@pytest.mark.parametrize(("group", "name"), [(group, name) for group, table in doors.TABLE.items() for name in table])
def test_every_place_of_the_table_gives_something(group: doors.Group, name: str) -> None:
    """A place that is wrong would count as a missing part."""
    assert doors.find(group, name) is not None


def test_a_package_that_a_part_needs_and_that_is_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "half_a_part.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(str(tmp_path))
    table = {"whole": "half_a_part", "name": "json:no_such_name"}
    monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, "parts": table})
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        doors.find("parts", "whole")
    with pytest.raises(AttributeError):
        doors.find("parts", "name")


def test_no_part_is_above_its_ceiling(capsys: pytest.CaptureFixture[str]) -> None:
    import part_lines

    part_lines.main()
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(PARTS)
    assert part_lines.code_lines('"""What."""\n\nx = 1  # why\n# how\ny = """\nz"""\n') == 3
