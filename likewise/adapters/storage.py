"""Common parts of the adapters: the index behind an adapter, and checks that the framework's values will come back
equal."""

from __future__ import annotations

import asyncio
import base64
import functools
import inspect
import json
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from indexer import BadInput, Filter, Index, NoWords
from search import Hit, Hits, Searcher

R = TypeVar("R")
C = TypeVar("C", bound=type)

_SAME_ARGUMENTS = (
    ("where", "filter", "filters", "search_kwargs"),
    ("k", "top_k", "similarity_top_k", "limit", "search_kwargs"),
    ("ids", "uris", "node_ids", "document_ids"),
    ("address", "path", "index", "index_name"),
)
"""Names of one argument in likewise and in the frameworks. A user may know it by another name than the called one."""

_LOGGER = logging.getLogger("search.adapters")


def open_or_create(address: str | PathLike[str] | None) -> Index:
    """Return the index at an address; make it if there is none. Without an address, return a temporary index.

    Raises:
        BadInput: something that is not an index is there already.
        NewerFormat, OlderFormat, IndexDamaged: the index cannot be read.
    """
    if address is None:
        return Index.temporary(dimensions="auto")
    return Index.open(address, create=True, dimensions="auto")


def log_notes(notes: Iterable[str]) -> None:
    """Log the notes of a call as warnings, because no framework's result has a place for them."""
    for note in notes:
        _LOGGER.warning("%s", note)


def with_notes_logged(hits: Hits) -> tuple[Hit, ...]:
    """Return the hits of an answer, and log its notes."""
    log_notes(hits.notes)
    return hits.hits


def by_words(searcher: Searcher, text: str, k: int, where: Filter | None) -> tuple[Hit, ...]:
    """Return the k best hits by BM25. A question without a word to rank by has no hits, and the reason is logged."""
    try:
        return with_notes_logged(searcher.search(text, k, where=where, mode="words"))
    except NoWords as error:
        log_notes([str(error)])
        return ()


def in_thread(method: Callable[..., R]) -> Callable[..., Coroutine[Any, Any, R]]:
    """Return the coroutine that runs a method in a thread. An object of a subclass runs the subclass's method."""

    @functools.wraps(method)
    async def run(self: Any, /, *args: Any, **kwargs: Any) -> R:
        result: R = await asyncio.to_thread(getattr(self, method.__name__), *args, **kwargs)
        return result

    return run


def refuse_unknown(call: str, given: Iterable[str], names: Collection[str]) -> None:
    """Raise TypeError if one of the given arguments is not among the names that a call has. The error gives the right
    name."""
    for unknown in given:
        if unknown not in names:
            same = [name for group in _SAME_ARGUMENTS if unknown in group for name in group if name in names]
            near = same or get_close_matches(unknown, names, 1)
            advice = f"give {' or '.join(near)}" if near else f"it has {', '.join(names) or 'none'}"
            raise TypeError(f"{call} has no argument {unknown!r}: {advice}")


def _with_known_arguments(function: Callable[..., R]) -> Callable[..., R]:
    """Return the method, which refuses arguments that its signature does not name. The frameworks' signatures accept
    every argument, but a misspelt argument must not be ignored."""
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)][1:]

    @functools.wraps(function)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> R:
        owner = getattr(self, "__name__", type(self).__name__)
        refuse_unknown(f"{owner}.{function.__name__}".removesuffix(".__init__"), kwargs, names)
        return function(self, *args, **kwargs)

    return checked


def strict(owner: C) -> C:
    """Let the constructor and the public methods of a class refuse arguments that their signatures do not name."""
    for name, method in list(vars(owner).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(method, classmethod):
            setattr(owner, name, classmethod(_with_known_arguments(method.__func__)))
        elif isinstance(method, FunctionType) and not inspect.iscoroutinefunction(method):
            setattr(owner, name, _with_known_arguments(method))
    return owner


def require_own_vectors(index: Index) -> None:
    """Raise BadInput if an index has its own model, because vectors of a framework must not be mixed with its
    vectors."""
    if index.recipe is not None:
        raise BadInput(
            f"{index.address}: embeds its documents with its own model {index.recipe.model}: add to it with "
            "Index.add, or give the adapter another address for vectors of your framework"
        )


def require_same(uri: str, metadata: Mapping[str, Any]) -> None:
    """Raise BadInput for metadata that would come back changed, such as a tuple, which JSON turns into a list.

    Values that are not JSON are refused when the document is added.
    """
    try:
        same = json.loads(json.dumps(metadata)) == metadata
    except (TypeError, ValueError):
        return
    if not same:
        (name, value) = next(
            (
                (name, value)
                for name, value in metadata.items()
                if not isinstance(name, str) or json.loads(json.dumps(value)) != value
            ),
            ("", metadata),
        )
        raise BadInput(
            f"{uri}: metadata field {name!r} would not come back as it is, {value!r:.80}: give text, numbers, "
            "booleans, None, lists and dictionaries with text as keys"
        )


def packed(numbers: Sequence[float]) -> str:
    """Return an embedding as text from which `unpacked` gives the same numbers; in float32 if this holds them
    exactly."""
    rows = np.asarray(numbers, dtype="<f8")
    with np.errstate(over="ignore"):
        half = rows.astype("<f4")
    kind, row = ("f", half) if np.array_equal(half, rows) else ("d", rows)
    return kind + base64.b64encode(row.tobytes()).decode()


def unpacked(text: str) -> list[float]:
    """Return the embedding from a text that `packed` has made."""
    numbers: list[float] = np.frombuffer(base64.b64decode(text[1:]), "<f4" if text[0] == "f" else "<f8").tolist()
    return numbers
