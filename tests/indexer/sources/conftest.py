"""The fixture of the tests of sources: `collect` reads SOURCEs into a list of entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.records import KnownFile
from indexer.sources import Entry, ReadOptions, open_sources, read


@pytest.fixture
def collect() -> Callable[..., list[Entry]]:
    def run(*arguments: Path | str, known: dict[str, KnownFile] | None = None, **options: Any) -> list[Entry]:
        settings = ReadOptions(**options)
        sources = open_sources([str(argument) for argument in arguments], settings)
        return [entry for source in sources for entry in read(source, settings, (known or {}).get)]

    return run
