"""No adapter test reaches a network, coroutines of outside suites are run, and temporary indexes are kept in memory."""

from __future__ import annotations

import inspect
import os
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported
os.environ["LANGSMITH_TRACING"] = "false"


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> None:
    """LangChain's suite leaves its coroutines unmarked."""
    if "adapters" in collector.path.parts and name.startswith("test") and inspect.iscoroutinefunction(obj):
        pytest.mark.asyncio(obj)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(self: socket.socket, address: Any) -> None:
        raise AssertionError(f"a test asks the network for {address}")

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture(autouse=True)
def temporary_indexes_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Outside suites make an index per test: without a disk to wait for they take a quarter of the time."""
    tmp_path_factory.getbasetemp()  # chosen at its first use: tests/hardware.py says where
    if os.access("/dev/shm", os.W_OK) and Path("/dev/shm").is_dir():
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
