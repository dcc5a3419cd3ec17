"""A closed Index, Searcher or AsyncSearcher refuses every call with a sentence that says what to do."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from word_encoder import WordEncoder

from indexer import Document, Index
from indexer.deadline import NEVER
from indexer.errors import BadInput
from search import AsyncSearcher, Query, Searcher, search_indexes

GIVEN: dict[str, Any] = {
    **{"documents": [Document("a", "text")], "query": "text", "queries": ["text"], "uri": "a", "uris": ["a"]},
    **{
        "wanted": "a",
        "field": "x",
        "kind": "number",
        "count": 1,
        "vector": [1.0],
        "destination": "copy.index",
        "where": None,
        "texts": ["text"],
    },
}
"""A value for each argument that a method needs."""

REFUSALS = {
    Index: "{}: this Index is closed: open it again with Index.open",
    Searcher: "{}: this Searcher is closed: make another Searcher of this path",
    AsyncSearcher: "{}: this Searcher is closed: make another AsyncSearcher of this path",
}
KNOWN = {"address", "close", "ask_ahead", "searcher"}
"""Members that use nothing of what was closed."""


def members(of: type) -> list[str]:
    """Return the names of the public members that use the index, without those of the class."""
    special = [name for name in ("__contains__", "__len__", "__iter__") if name in dir(of)]
    public = [name for name in dir(of) if not name.startswith("_") and name not in KNOWN]
    of_index = [name for name in [*public, *special] if (of, name) != (Index, "info")]
    return [name for name in of_index if not isinstance(inspect.getattr_static(of, name), classmethod)]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, module_encoder: WordEncoder) -> str:
    with Index.create(tmp_path_factory.mktemp("closed") / "x.index", module_encoder) as index:
        index.add([Document("a", "text")])
    return index.address


@pytest.mark.asyncio
@pytest.mark.parametrize(("of", "name"), [(of, name) for of in REFUSALS for name in members(of)])
async def test_every_member_of_a_closed_object_is_refused(address: str, of: Any, name: str) -> None:
    closed: Any = Index.open(address) if of is Index else of(address)
    for _ in range(2):  # what is closed may be closed again
        if of is AsyncSearcher:
            await closed.close()
        else:
            closed.close()
    with pytest.raises(BadInput) as refused, ExitStack() as stack:
        value = getattr(closed, name)
        given = {"answer": (Query("text"),), "until": (NEVER,), "replace_all": (GIVEN["documents"], [[1.0]])}.get(name)
        if given is None:
            parameters = inspect.signature(value).parameters.values()
            given = tuple(GIVEN[each.name] for each in parameters if each.default is each.empty and each.name in GIVEN)
        answer = value(*given, **({"uris": ["a"]} if name == "remove" else {}))
        if name == "lock":
            stack.enter_context(answer)
        elif of is AsyncSearcher:
            await (anext(answer) if name in ("documents", "all_vectors") else answer)
    assert str(refused.value) == REFUSALS[of].format(address)


@pytest.mark.parametrize("name", ["documents", "all_vectors"])
def test_an_iterator_ends_with_its_searcher(tmp_path: Path, name: str) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        index.add([Document(f"d{n}", "text") for n in range(300)], np.ones((300, 2)))
    with Searcher(index.address) as searcher:
        rows = getattr(searcher, name)()
        assert len(list(islice(rows, 2))) == 2
    with pytest.raises(BadInput) as refused:
        next(rows)
    assert str(refused.value) == REFUSALS[Searcher].format(index.address)


def test_what_was_closed_keeps_its_address(address: str) -> None:
    with Index.open(address) as index, Searcher(address) as searcher:
        limited = searcher.until(NEVER)
    assert (index.address, searcher.address) == (address, address)
    assert index.info().documents == 1
    assert limited.count() == 1, "a call that runs is not ended"
    limited.close()
    with pytest.raises(BadInput, match="this Searcher is closed"):
        search_indexes([searcher], "text")
    with Index.temporary(dimensions=2) as temporary:
        pass
    with pytest.raises(BadInput, match=r"this Index is closed: a temporary index is deleted, make another$"):
        len(temporary)
