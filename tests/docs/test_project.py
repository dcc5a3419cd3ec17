"""What releases and contributors rely on: versions that agree, hooks that run `make check`, whole distributions."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.metadata import Metadata

from hatch_build import package_page

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_one() -> None:
    version = PROJECT["project"]["version"]
    assert yaml.safe_load(read("CITATION.cff"))["version"] == version
    first = next(line for line in read("CHANGELOG.md").splitlines() if line.startswith("## "))
    assert re.fullmatch(rf"## {re.escape(version)} \((not released|\d{{4}}-\d\d-\d\d)\)", first)


def test_the_hooks_run_what_make_check_runs() -> None:
    recipe = read("Makefile").partition("\ncheck:")[2].partition("\n\n")[0].splitlines()[1:]
    hooks = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe]
    assert not any(hook["pass_filenames"] for hook in hooks)


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


def test_the_distributions_are_complete(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        (described,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Metadata.from_email(archive.read(described), validate=True)
    # The wheel is built from the sdist, so that its files are in both.
    files = {path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*")
             if path.is_file() and "__pycache__" not in path.parts}  # fmt: skip
    assert packed == files
    assert {f"{package}/py.typed" for package in PACKAGES} <= packed
    assert (metadata.name, str(metadata.version)) == ("likewise", PROJECT["project"]["version"])
    # Without an address of the repository no link can lead to its files.
    assert metadata.description is not None
    assert metadata.description.startswith(read("README.md").partition("](")[0])
    links = re.findall(r"\]\(([^)]*)\)", metadata.description)
    assert [link for link in links if not link.startswith("https://")] == []
    assert metadata.description_content_type == "text/markdown"
    with tarfile.open(sdist) as archive:
        top = {name.split("/")[1] for name in archive.getnames()}
    assert {"tests", "docs", "benchmarks", "data", "Makefile", "CONTRIBUTING.md", "constraints.txt"} <= top
    assert not top & {".venv", ".git", ".ci", "dist"}


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "likewise", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert PROJECT["project"]["version"] in said
