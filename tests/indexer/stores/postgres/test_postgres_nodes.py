"""The three servers of postgres_nodes.py: started, and each with an index of its own.

Runs where LIKEWISE_TEST_SHARDS names a folder.
"""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from postgres_nodes import VARIABLE, nodes

from indexer import Document, Index


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} is not set")
def test_each_server_holds_an_index() -> None:
    name = f"nodes{time.time_ns()}"
    for number, node in enumerate(nodes()):
        with Index.create(f"{node.uri}?index={name}", dimensions=2) as index:
            index.add([Document(f"d{number}", "a pear")], vectors=np.array([[1, 0]], np.float32))
    for number, node in enumerate(nodes()):
        with Index.open(f"{node.uri}?index={name}") as index:
            assert [document.uri for document in index] == [f"d{number}"]
            assert index.check().ok
