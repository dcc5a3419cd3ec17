"""The indexes that a process serves, by name. The HTTP service and MCP share this file."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

from indexer import errors
from indexer.deadline import Deadline
from indexer.filters.mapping import Filter
from indexer.lookup import unknown_uri
from indexer.records import Vector
from indexer.stores.addresses.open import is_uri
from indexer.stores.port import FieldValues, Info
from likewise.federation.several_indexes import answer_together
from search.hits.hits import Hits
from search.lanes import Overloaded
from search.query.query import Mode, Query
from search.searcher import Searcher
from search.timings import Timings

CLIENT_DEADLINE: ContextVar[Deadline] = ContextVar("client_deadline")
"""The deadline of the HTTP request that a tool of MCP answers. It ends when the client leaves."""

SEARCH_SECONDS = 20.0
"""Maximum seconds of a client's question, including the time that it waits for a thread."""

FILTER_SECONDS = 2.0
"""Maximum seconds of CPU for the filters of a client's question: 500 `contains` took 20."""

MAX_HITS = 1000
"""Maximum hits that a client may ask for."""

MAX_FOLDED_HITS = 200
"""Maximum hits that a client may ask for with `fold`, because each passage is compared with each family."""

LISTED_FIELDS = 200
"""Maximum metadata fields that are listed with their values. 200,000 fields took minutes."""

NAMED_FIELDS = 2000
"""Maximum rare fields that are listed by their names alone."""

FREQUENT_VALUES = 20
"""Maximum values of each field that are listed."""

SHARED_VALUES = 50
"""Maximum values of a field that a person chooses among. More values are counted no further."""

HISTOGRAM_BINS = 20

_UNAVAILABLE = {
    503: "the index is not available at this moment: try again",
    507: "the index cannot be written, because its disk is full",
}
_OF_THE_STORE = (
    *(errors.StorageError, errors.IndexDamaged, errors.IndexLocked, errors.NewerFormat, errors.OlderFormat),
    errors.NotAnIndex,
)

_log = logging.getLogger("likewise.server")


def client_deadline() -> Deadline:
    """Return the deadline of a client's question, which begins now."""
    return Deadline(SEARCH_SECONDS, waits=False, filter_seconds=FILTER_SECONDS)


def deadline_of_caller() -> Deadline:
    """Return the deadline of the HTTP request that is answered, or a new one over stdio."""
    return CLIENT_DEADLINE.get(None) or client_deadline()


class UnknownIndex(errors.LikewiseError):
    """No index of this name is served."""

    http_status = 404
    slug = "unknown-index"


@lru_cache(maxsize=64)
def _log_once(message: str) -> None:
    _log.error(message)


@dataclass(frozen=True)
class ServedIndex:
    """An index that is served.

    Attributes:
        name: its name for clients.
        address: a DSN or an absolute path; it is never shown to a client.
        searcher: answers questions to it.
    """

    name: str
    address: str = field(repr=False)
    searcher: Searcher

    @property
    def default_mode(self) -> Mode:
        """The mode of questions without a mode: hybrid, or words if no model can embed the question."""
        return "words" if self.searcher.recipe is None else "hybrid"

    def until(self, deadline: Deadline) -> ServedIndex:
        """Return this index for one caller, whose questions end when the deadline has passed."""
        return replace(self, searcher=self.searcher.until(deadline))

    def answer(self, query: Query) -> Hits:
        """Return the hits of a question. A hybrid question is answered by words alone if its model fails, and by
        meaning alone while the words of its index are still being read. A note says so.

        The cause goes to the log once, because clients cannot change it. Python and the shell raise ModelError instead,
        or wait: their caller can, and a different ranking must not get into a measurement.
        """
        return _answer(self.searcher.answer, query, self.name)

    def ask_ahead(self, query: Query) -> Callable[[], Future[Vector] | None] | None:
        """Return what begins to embed a question, as `Searcher.ask_ahead`."""
        return self.searcher.ask_ahead(query)

    def described(self, hits: Hits, members: Sequence[str]) -> dict[str, Any]:
        """Return hits with some of their members as `Hits.as_json`, without the address of the index."""
        return hits.as_json(members) | {"notes": [self.without_address(note) for note in hits.notes]}

    def index_of(self, name: str | None) -> ServedIndex:
        """Return the index that a hit names."""
        return self

    def describe(self) -> dict[str, Any]:
        """Return name, sizes, model and the types of the metadata fields, as `GET /v1/indexes` lists them."""
        info = self.info()
        with self.searcher.answering.snapshot() as snapshot:
            settings = snapshot.settings
        recipe = None if settings.model_open is not None else settings.recipe
        return {
            "name": self.name,
            "documents": info.documents,
            "passages": info.passages,
            "model": None if recipe is None else without_folders(recipe.model),
            "dimensions": info.dimensions,
            "fields": _types(info),
            "more_fields": info.details.get("more_fields", 0),
        }

    def info(self) -> Info:
        """Return the state of the index in numbers, with the fields that `describe` lists; `details` counts others."""
        info = self.searcher.info()
        if (more := len(info.fields) - LISTED_FIELDS) <= 0:
            return info
        commonest = dict.fromkeys((*self.searcher.commonest_fields(), *info.fields))
        listed = [name for name in commonest if name in info.fields][:LISTED_FIELDS]
        fields = {name: info.fields[name] for name in sorted(listed)}
        dates = tuple(name for name in info.dates if name in fields)
        return replace(info, fields=fields, dates=dates, details={**info.details, "more_fields": more})

    def fields(self) -> dict[str, Any]:
        """Return each field with its types, frequent values and range, as `GET /v1/indexes/{name}/fields` lists them.

        At most LISTED_FIELDS metadata fields are listed, and the number of the others.
        Fields of the document itself are listed where a person may choose by them: its format, its folder under the
        name `path`, and its time.
        """
        listed = _types(self.info())
        described = []
        for name, kinds in (listed | {"format": ["text"], "path": ["text"], "modified": ["text", "date"]}).items():
            try:
                field = self.facet(name)
            except errors.UnknownField:  # the last document with it has gone in between
                continue
            if field["documents"]:
                described.append({"name": name, "types": kinds, **field})
        rare = sorted(self.searcher.info().fields.keys() - listed.keys())
        return {"fields": described, "more_fields": len(rare), "rare": rare[:NAMED_FIELDS]}

    def facet(self, name: str, where: Filter | None = None, *, histogram: bool = False) -> dict[str, Any]:
        """Return how many documents that a filter leaves have a field, and how many have each of its frequent values.

        The values of `path` are the folders below the folder that holds all files. `shared` is the number of values
        that two documents or more have, at most SHARED_VALUES + 1.
        """
        searcher = self.searcher
        if name == "path":
            folders = searcher.folders(where)
            values = FieldValues(sum(folders.values()), tuple(folders.items())[: SHARED_VALUES + 1])
        else:
            values = searcher.values(name, SHARED_VALUES + 1, where)
        kind: Literal["date", "number"] = "date" if values.days else "number"
        return {
            "documents": values.documents,
            "values": [{"value": value, "documents": count} for value, count in values.frequent[:FREQUENT_VALUES]],
            "shared": sum(count > 1 for _, count in values.frequent),
            "numbers": values.numbers and {"min": values.numbers[0], "max": values.numbers[1]},
            "days": values.days and {"min": values.days[0], "max": values.days[1]},
            "histogram": searcher.histogram(name, kind, HISTOGRAM_BINS, where) if histogram else [],
        }

    def filter_notes(self, where: Filter | None) -> list[str]:
        """Return the notes on a filter, without the address of the index."""
        return [self.without_address(note) for note in self.searcher.filter_notes(where)]

    def without_address(self, message: str) -> str:
        """Return a message with the name in place of the address, because clients must not see the address."""
        for address in sorted({self.searcher.address, self.address}, key=len, reverse=True):
            message = message.replace(address, self.name)
        return message


@dataclass(frozen=True)
class ServedTogether:
    """Several indexes that answer one question together, with the members of `ServedIndex` that answer questions.

    Attributes:
        indexes: at least one; each only once.
    """

    indexes: tuple[ServedIndex, ...]

    @property
    def name(self) -> str:
        return ",".join(served.name for served in self.indexes)

    @property
    def default_mode(self) -> Mode:
        """Hybrid, or words if some index has no model."""
        return "words" if any(served.default_mode == "words" for served in self.indexes) else "hybrid"

    def until(self, deadline: Deadline) -> ServedTogether:
        return ServedTogether(tuple(served.until(deadline) for served in self.indexes))

    def answer(self, query: Query, *, by_default: bool = False) -> Hits:
        """Return the hits of a question, as `ServedIndex.answer`; each hit names its index.

        Args:
            by_default: whether nobody chose the mode. A note says why it is words although some indexes have a model.
        """
        searchers = {served.name: served.searcher for served in self.indexes}
        hits = _answer(partial(answer_together, searchers), query, self.name)
        without = [served.name for served in self.indexes if by_default and served.default_mode == "words"]
        if not 0 < len(without) < len(self.indexes):
            return hits
        note = f"no model embeds questions to {' or '.join(without)}, so every index was ranked by words alone"
        return replace(hits, notes=(*hits.notes, f'{note}: ask other "indexes", or send "mode" if this is meant'))

    def index_of(self, name: str | None) -> ServedIndex:
        return next(served for served in self.indexes if served.name == name)

    def ask_ahead(self, query: Query) -> Callable[[], Future[Vector] | None] | None:
        """Return what begins to embed a question by the model of the first index, which the others usually share."""
        return self.indexes[0].ask_ahead(query)

    def described(self, hits: Hits, members: Sequence[str]) -> dict[str, Any]:
        return hits.as_json(members) | {"notes": [self.without_address(note) for note in hits.notes]}

    def without_address(self, message: str) -> str:
        for served in self.indexes:
            message = served.without_address(message)
        return message


def _answer(answer: Callable[[Query], Hits], query: Query, name: str) -> Hits:
    """Return the hits of a question, of one leg of hybrid mode if the other leg fails."""
    if query.fold and query.k > MAX_FOLDED_HITS:
        raise errors.BadInput(
            f"fold compares hits with each other: ask for {MAX_FOLDED_HITS} hits at most, or unfolded"
        )
    by_either = query.mode == "hybrid" and query.min_score is None and not query.examples and query.row is None
    try:
        return answer(query)
    except errors.WordsBuilding:
        if not by_either:
            raise
        hits = answer(replace(query, mode="dense"))
        note = f"the words of {name} are still being read: ranked by meaning alone"
        return replace(hits, notes=(*hits.notes, note))
    except errors.ModelError as error:
        if error.http_status < 500 or not by_either:
            raise
        try:
            hits = answer(replace(query, mode="words", explain=False))
        except errors.NoWords:
            raise error from None
        _log_once(f"{name}: hybrid questions are answered by words alone: {errors.in_shell(error)}")
        note = f"the model of {name} does not answer at this moment: ranked by words alone"
        note += ", and not explained" if query.explain else ""
        return replace(hits, notes=(*hits.notes, note))


class ServedIndexes(Mapping[str, ServedIndex]):
    """Open indexes by name. Close them when nobody is served any longer."""

    def __init__(self, addresses: Mapping[str, str], timings: Timings | None = None) -> None:
        """Open every index.

        Args:
            addresses: the folder or DSN of each index, by name.
            timings: is called with the duration of each step of a question.

        Raises:
            NotAnIndex, NewerFormat, OlderFormat, IndexDamaged: one of them cannot be read.
        """
        if not addresses:
            raise errors.BadInput("there is no index to serve: name at least one")
        self._timings = timings or Timings()
        self._indexes: dict[str, ServedIndex] = {}
        for name, given in addresses.items():
            # An absolute path is found in messages without doubt; "a" or "." would be found in every word.
            address = given if is_uri(given) else os.path.abspath(given)  # noqa: PTH100
            searcher = Searcher(address, timings=timings)
            searcher.count()  # opening does not read yet, and a damaged index should be refused at the start
            self._indexes[name] = ServedIndex(name, address, searcher)

    def __getitem__(self, name: str) -> ServedIndex:
        if (served := self._indexes.get(name)) is None:
            raise UnknownIndex(f"no index {name[:100]!r} is served here: {', '.join(self)}")
        return served

    def __iter__(self) -> Iterator[str]:
        return iter(self._indexes)

    def __len__(self) -> int:
        return len(self._indexes)

    def choose(self, name: str | None) -> ServedIndex | ServedTogether:
        """Return the index of this name; without a name, the only one, or all of them for one question.

        Raises:
            UnknownIndex: there is no such index.
        """
        if name is None and len(self) > 1:
            return self.together(None)
        return self[next(iter(self)) if name is None else name]

    def with_document(self, uri: str, name: str | None) -> ServedIndex:
        """Return the index of this name; without a name, the one that has this document, or the only one.

        Raises:
            UnknownIndex: there is no such index.
            UnknownUri: no index has the document.
            BadInput: several indexes have it.
        """
        if name is not None or len(self) == 1:
            return self[next(iter(self)) if name is None else name]
        having = [served for served in self.values() if uri in served.searcher]
        if len(having) > 1:
            names = ", ".join(served.name for served in having)
            raise errors.BadInput(f"several indexes have a document with this uri: name one of them as index ({names})")
        if not having:
            raise unknown_uri(", ".join(self), uri)
        return having[0]

    def together(self, names: Sequence[str] | None) -> ServedTogether:
        """Return the indexes of these names, or all, for one question.

        Raises:
            UnknownIndex: one of them is not served.
        """
        return ServedTogether(tuple(self[name] for name in dict.fromkeys(names or self)))

    def warm(self) -> None:
        """Load the encoder of every index, and begin to read its words, so that the first question does not wait."""
        for served in self._indexes.values():
            if not len(served.searcher):
                continue
            searcher, mode = served.searcher.until(Deadline(waits=False)), served.default_mode
            try:
                searcher.search("warm", k=1, mode=mode)
            except errors.WordsBuilding:
                if mode == "hybrid":
                    searcher.search("warm", k=1, mode="dense")

    def for_client(self, error: errors.LikewiseError) -> str:
        """Return the message of an error for a client over HTTP or MCP. A cause on this side goes to the log instead.

        `str(error)` does not mention a command line, because clients have none; `in_shell(error)` is for the operator.
        """
        if isinstance(error, errors.UnknownUri):  # the store's own message names its address
            return "no document has this uri: copy uris from hits as they are"
        if isinstance(error, errors.NothingKnown):  # its own message names the model, which may be a local folder
            return (
                f"the model knows nothing in text {error.texts[0]}, so there is no vector for it: use other words, or "
                'search with the mode "words"'
            )
        if error.http_status < 500 or isinstance(error, errors.DeadlinePassed | Overloaded | errors.WordsBuilding):
            message = str(error)
            for served in self._indexes.values():
                message = served.without_address(message)
            return message
        if isinstance(error, _OF_THE_STORE):
            self._timings.failed(error.slug)
        _log.error("%s: %s", type(error).__name__, errors.in_shell(error))
        return _UNAVAILABLE.get(
            error.http_status, "the index cannot be read: the operator of the service finds the reason in its log"
        )

    def close(self) -> None:
        """Close every searcher."""
        for served in self._indexes.values():
            served.searcher.close()


def _types(info: Info) -> dict[str, list[str]]:
    """Return the types of the metadata fields, in the order of their names."""
    return {name: [*types, *(["date"] if name in info.dates else [])] for name, types in info.fields.items()}


def without_folders(model: str) -> str:
    """Return a model's name. For a model in a folder of this machine, return only the name of the folder."""
    return Path(model).name if Path(model).is_absolute() or model.startswith((".", "~")) else model
