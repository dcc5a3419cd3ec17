"""The Containerfile and the compose file, as far as they can be checked without containers."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from likewise.postgres.address import parse_address
from likewise.service.commands.serve import serve
from likewise.service.http.run import GRACE_S

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    """Return each instruction of the Containerfile with its arguments."""
    text = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_everything_that_the_build_needs_is_copied_and_not_ignored(
    steps: list[tuple[str, str]], project: dict[str, Any]
) -> None:
    sources = [source for name, rest in steps if name == "COPY" for source in rest.split()[:-1]]
    assert all((ROOT / source).exists() for source in sources)
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    described = ["hatch_build.py", "README.md", *project["project"]["license-files"]]
    assert sorted(sources) == sorted([*wheel, *described, "pyproject.toml", "constraints.txt"])
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line[1:] for line in kept if line.startswith("!")} == set(sources)


def test_the_extras_that_are_installed_exist(steps: list[tuple[str, str]], project: dict[str, Any]) -> None:
    torch, install = (rest for name, rest in steps if name == "RUN" and "pip install" in rest)
    (target,) = (word for word in shlex.split(install) if "[" in word)
    extras = target.partition("[")[2].rstrip("]").split(",")
    assert set(extras) <= set(project["project"]["optional-dependencies"])
    assert "--no-deps" in torch, "the index of torch has old versions of what torch needs"
    assert all("-c /src/constraints.txt" in each for each in (torch, install))


def test_the_service_is_not_root_and_owns_its_cache(steps: list[tuple[str, str]], compose: dict[str, Any]) -> None:
    names = [name for name, _ in steps]
    (user,) = (rest for name, rest in steps if name == "USER")
    assert user == "likewise"
    assert "RUN" not in names[names.index("USER") :]
    assert any("useradd" in rest and f"install -d -o {user} /cache" in rest for name, rest in steps if name == "RUN")
    assert ("ENV", "XDG_CACHE_HOME=/cache") in steps
    assert "cache:/cache" in compose["services"]["search"]["volumes"]


def test_the_command_lines_are_accepted(steps: list[tuple[str, str]], compose: dict[str, Any]) -> None:
    ran = {name: json.loads(rest) for name, rest in steps if name in ("ENTRYPOINT", "CMD")}
    assert ran["ENTRYPOINT"] == ["likewise"]
    search = compose["services"]["search"]
    for command in (ran["CMD"], search["command"]):
        assert command[0] == "serve"
        parameters = serve.make_context("serve", command[1:]).params
        assert (parameters["host"], parameters["port"], parameters["open_readyz"]) == ("0.0.0.0", 8765, True)
    assert ("EXPOSE", "8765") in steps
    seconds = int(search["stop_grace_period"].removesuffix("s"))
    assert seconds > parameters["drain"] + GRACE_S


def test_the_parts_of_the_compose_file_fit_together(compose: dict[str, Any]) -> None:
    search, database = compose["services"]["search"], compose["services"]["db"]
    assert (ROOT / search["build"]["dockerfile"]).exists()
    address = parse_address(search["environment"]["LIKEWISE_INDEX"])
    assert address.conninfo == f"postgresql://{database['environment']['POSTGRES_USER']}@db/likewise"
    assert search["environment"]["PGPASSWORD"] == database["environment"]["POSTGRES_PASSWORD"]
    assert search["depends_on"]["db"]["condition"] == "service_healthy"
    assert "healthcheck" in database
    mounted = {volume.partition(":")[0] for service in (search, database) for volume in service["volumes"]}
    assert mounted == set(compose["volumes"])
