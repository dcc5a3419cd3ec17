"""An index of a few documents, the application over it, and a service in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from indexer import Document, Index
from likewise.service import create_app

ADDRESS = "http://127.0.0.1"
DOCUMENTS = [
    Document("moon", "The moon orbits the earth.\nIt is full once a month.", "Moon", {"year": 2020, "lang": "en"}),
    Document("sun", "The sun is a star.", "Sun", {"year": 2021, "lang": "en", "tags": ["star", "day"]}),
    Document("erde", "Die Erde kreist um die Sonne.", "Erde", {"year": 2022, "lang": "de"}),
    Document("bread", "Bread is baked in an oven.", "Bread", {"year": 2019, "lang": "en"}),
]


@pytest.fixture
def papers(tmp_path: Path, encoder: Any) -> Path:
    """An index of four documents."""
    folder = tmp_path / "papers.index"
    with Index.create(folder, model=encoder) as index:
        index.add(DOCUMENTS)
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, module_encoder: Any) -> Iterator[TestClient]:
    """One client for the tests of a file that change nothing."""
    folder = tmp_path_factory.mktemp("shared") / "papers.index"
    with Index.create(folder, model=module_encoder) as index:
        index.add(DOCUMENTS)
    app = create_app({"papers": str(folder)})
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def open_client() -> Iterator[Callable[..., TestClient]]:
    """Clients of applications over some indexes, with the options of `create_app`."""
    clients: list[TestClient] = []

    def open_one(indexes: dict[str, Path], **options: Any) -> TestClient:
        app = create_app({name: str(path) for name, path in indexes.items()}, **options)
        client = TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)
        client.__enter__()
        clients.append(client)
        return client

    yield open_one
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(open_client: Callable[..., TestClient], papers: Path) -> TestClient:
    return open_client({"papers": papers})


@pytest.fixture
def writer(open_client: Callable[..., TestClient], papers: Path) -> TestClient:
    return open_client({"papers": papers}, writable=True)


@dataclass(frozen=True)
class Running:
    """A service in a process of its own."""

    process: subprocess.Popen[str]
    name: str
    port: int

    @property
    def address(self) -> str:
        return f"{ADDRESS}:{self.port}"

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture
def own_vectors(tmp_path: Path) -> Path:
    """An index that needs no model, for services in other processes."""
    folder = tmp_path / "vectors.index"
    with Index.create(folder, dimensions=3) as index:
        index.add(DOCUMENTS[:3], vectors=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    return folder


@pytest.fixture
def serving() -> Callable[..., Any]:
    """Start `likewise serve` on a free port and wait until it answers."""

    @contextmanager
    def start(*arguments: str | Path, **environment: str) -> Iterator[Running]:
        root = str(Path(__file__).parents[3])
        workers = () if "--workers" in arguments else ("--workers", "1")  # the same on every machine
        command = [sys.executable, "-c", "from likewise.shell import main; main()", "serve"]
        process = subprocess.Popen(
            [*command, *map(str, arguments), *workers, "--port", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": root, **environment},
        )
        assert process.stderr is not None
        try:
            said = ""
            for line in process.stderr:
                said += line
                if match := re.fullmatch(r"likewise: serving (.+) at http://127\.0\.0\.1:(\d+)\n", line):
                    yield Running(process, match[1], int(match[2]))
                    break
            else:
                raise AssertionError(f"exit {process.wait()}: {said}")
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    return start
