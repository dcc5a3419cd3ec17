"""What releases and contributors rely on: versions that agree, hooks that run `make check`, whole distributions."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hatch_build import package_page

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
SHIPPED = tomllib.loads((ROOT / "tests" / "docs" / "shipped.toml").read_text(encoding="utf-8"))

_OF_OTHERS = re.compile(rb"(?i)copyright (?:\(c\)|\xc2\xa9|\d{4})|SPDX-License-Identifier|licensed under|@license")
"""What files of others say about their authors and their licence."""


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_version_and_date_are_one() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == VERSION
    first = next(line for line in read("CHANGELOG.md").splitlines() if line.startswith("## "))
    assert first in {f"## {VERSION} ({citation['date-released']})", f"## {VERSION} (not released)"}


def test_the_hooks_run_what_make_check_runs() -> None:
    recipes = read("Makefile").partition("\ncheck:")[2].partition("\nbench:")[0]
    recipe = [line for line in recipes.splitlines() if line.startswith("\t")]
    hooks = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe]
    assert not any(hook["pass_filenames"] for hook in hooks)


def test_torch_alone_comes_from_its_index_in_one_try(tmp_path: Path) -> None:
    def installing(*more: str) -> list[str]:
        command = ["make", "--dry-run", f"VENV={tmp_path}", "setup", *more]
        printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        return [line for line in printed.splitlines() if "pip install" in line]

    torch, *others = installing("TORCH_INDEX=https://torch.example/cpu")
    assert others == installing("TORCH_INDEX=")
    assert len(others) == 2
    assert "--no-deps --retries 0 --timeout 10 --index-url https://torch.example/cpu" in torch


def test_another_run_does_not_remove_the_folders_of_this_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    bases = [each for each in (folder, folder.parent) if re.fullmatch(r"pytest-\d+", each.name)]
    if not bases:
        pytest.skip("--basetemp names the folder")
    assert (bases[0] / ".lock").is_file()


@pytest.mark.parametrize("form", ["bug", "idea"])
def test_the_forms_ask_what_github_can_show(form: str) -> None:
    loaded: dict[str, Any] = yaml.safe_load(read(f".github/ISSUE_TEMPLATE/{form}.yml"))
    assert all(loaded[member] for member in ("name", "description"))
    asked = [element for element in loaded["body"] if element["type"] != "markdown"]
    assert {element["type"] for element in asked} == {"textarea"}
    assert all(element["attributes"]["label"] for element in asked)
    assert len({element["id"] for element in asked}) == len(asked)


def test_the_package_page_links_into_the_repository() -> None:
    readme = "[Serving](docs/serving.md#agents), [formats](#what-it-reads), [SBERT](https://www.sbert.net)\n"
    assert package_page(readme, "https://git.example/likewise", "1.2.3") == (
        "[Serving](https://git.example/likewise/blob/v1.2.3/docs/serving.md#agents), "
        "[formats](https://git.example/likewise/blob/v1.2.3/README.md#what-it-reads), [SBERT](https://www.sbert.net)\n"
    )
    assert package_page(readme, None, "1.2.3").splitlines()[0] == "Serving, formats, [SBERT](https://www.sbert.net)"


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the wheel and the sdist: those in LIKEWISE_TEST_DISTRIBUTIONS, which `make release` sets, or new ones."""
    if (folder := Path(os.environ.get("LIKEWISE_TEST_DISTRIBUTIONS", ""))) == Path():
        folder = tmp_path_factory.mktemp("dist")
        # The wheel is built from the sdist, so that its files are in both. Nothing is downloaded.
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
        subprocess.run(command, check=True, capture_output=True, timeout=100)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_wheel_has_what_is_written_down(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[0]) as archive:
        packed = set(archive.namelist())
        foreign = [name for name in packed if _OF_OTHERS.search(archive.read(name)) and "/licenses/" not in name]
    fitting = {pattern: fnmatch.filter(packed, pattern) for pattern in SHIPPED["wheel"]}
    assert [pattern for pattern, names in fitting.items() if not names] == []
    assert packed - set().union(*fitting.values()) == set()
    assert foreign == []
    files = {path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*")
             if path.is_file() and "__pycache__" not in path.parts}  # fmt: skip
    assert {name for name in packed if ".dist-info/" not in name} == files


@pytest.mark.slow
def test_the_sdist_has_what_is_written_down(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[1]) as archive:
        members = [member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()]
    assert sorted({name.partition("/")[0] for name in members}) == SHIPPED["sdist"]
    if not (ROOT / ".git").exists():
        pytest.skip("only a clone knows which files are in the repository")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    files = {name for name in listed if (ROOT / name).is_file() and not name.startswith((".ci/", ".github/"))}
    assert set(members) - {"PKG-INFO"} == files


def test_the_metadata_are_what_package_indexes_accept(distributions: tuple[Path, Path]) -> None:
    wheel, sdist = distributions
    with zipfile.ZipFile(wheel) as archive:
        folder = f"likewise-{VERSION}.dist-info"
        described = archive.read(f"{folder}/METADATA")
        assert archive.read(f"{folder}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    with tarfile.open(sdist) as archive:
        member = archive.extractfile(f"likewise-{VERSION}/PKG-INFO")
        assert member is not None
        assert member.read() == described
    metadata = Metadata.from_email(described, validate=True)
    assert (wheel.name, sdist.name) == (f"likewise-{VERSION}-py3-none-any.whl", f"likewise-{VERSION}.tar.gz")
    assert (metadata.name, str(metadata.version)) == ("likewise", VERSION)
    assert (metadata.license_expression, metadata.license_files) == ("Apache-2.0", ["LICENSE"])
    # Without an address of the repository no link can lead to its files.
    assert metadata.description is not None
    assert metadata.description.startswith(read("README.md").partition("](")[0])
    links = re.findall(r"\]\(([^)]*)\)", metadata.description)
    assert [link for link in links if not link.startswith("https://")] == []
    assert metadata.description_content_type == "text/markdown"


def test_everything_that_is_installed_has_a_pin() -> None:
    """What core, extras, tests and builds need, directly or not. Only so is a build the same without a network."""
    pins = {canonicalize_name(line.partition("==")[0]) for line in read("constraints.txt").splitlines()}
    extras = PROJECT["project"]["optional-dependencies"].values()
    lines = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"], *chain.from_iterable(extras)]
    waiting, needed = [Requirement(line) for line in lines if not line.startswith("likewise[")], set[tuple[str, str]]()
    while waiting:
        requirement = waiting.pop()
        if (name := canonicalize_name(requirement.name), str(requirement.extras)) in needed:
            continue
        needed.add((name, str(requirement.extras)))
        environments = [{"extra": extra} for extra in ("", *requirement.extras)]
        for each in map(Requirement, distribution(name).requires or []):
            if each.marker is None or any(map(each.marker.evaluate, environments)):
                waiting.append(each)
    # A torch for GPUs names the versions of CUDA and of its compiler itself.
    unpinned = {name for name, _ in needed if not name.startswith(("cuda-", "nvidia-", "triton"))} - pins
    assert unpinned == {"pip", "setuptools"}  # These come with the environment, or torch and sqlite-utils bring them.


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "likewise", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert VERSION in said
