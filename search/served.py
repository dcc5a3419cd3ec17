"""The indexes that a process serves, by name: what the HTTP service and MCP share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from indexer.errors import BadInput, LikewiseError, UnknownField
from indexer.stores.open import is_uri, name_in, without_passwords
from indexer.stores.port import FieldValues
from search.query import Mode
from search.searcher import Searcher
from search.timings import Timings

MAX_HITS = 1000
"""Most hits that a client may ask for."""

FREQUENT_VALUES = 20
"""How many values of each field are listed."""

_RENAMED = re.compile(r"(\w[\w.-]*)=(.+)", re.DOTALL)
_UNNAMEABLE = re.compile(r"[^\w.-]+")


class UnknownIndex(LikewiseError):
    """No index of this name is served."""

    http_status = 404
    slug = "unknown-index"


@dataclass(frozen=True)
class ServedIndex:
    """An index that is served.

    Attributes:
        name: its name for clients.
        address: where it is kept, a DSN or an absolute path; no client is told.
        searcher: answers questions to it.
    """

    name: str
    address: str = field(repr=False)
    searcher: Searcher

    @property
    def default_mode(self) -> Mode:
        """The mode of questions that name none: hybrid, or words where no model can embed the question."""
        return "words" if self.searcher.recipe is None else "hybrid"

    def describe(self) -> dict[str, Any]:
        """Return name, sizes, model and the types of the metadata fields, as `GET /v1/indexes` lists them."""
        info, recipe = self.searcher.info(), self.searcher.recipe
        return {
            "name": self.name,
            "documents": info.documents,
            "passages": info.passages,
            "model": None if recipe is None else _without_folders(recipe.model),
            "dimensions": info.dimensions,
            "fields": {field: _types(types, field in info.dates) for field, types in info.fields.items()},
        }

    def fields(self) -> list[dict[str, Any]]:
        """Return each field with its types, frequent values and range, as `GET /v1/indexes/{name}/fields` lists them.

        Fields of the document itself are listed where a person may choose by them: its format, and its time.
        """
        info = self.searcher.info()
        types = {field: _types(kinds, field in info.dates) for field, kinds in info.fields.items()}
        types |= {"format": ["text"], "modified": ["text", "date"]}
        described = []
        for name, kinds in types.items():
            try:
                values = self.searcher.values(name, FREQUENT_VALUES)
            except UnknownField:  # the last document with it has gone in between
                continue
            if values.documents:
                described.append({"name": name, "types": kinds, **_described(values)})
        return described

    def without_address(self, message: str) -> str:
        """Return a message with the name in place of the address, which is nobody's business."""
        for address in sorted({self.searcher.address, self.address}, key=len, reverse=True):
            message = message.replace(address, self.name)
        return message


class ServedIndexes(Mapping[str, ServedIndex]):
    """Open indexes by name. Close it when nobody is served any more."""

    def __init__(self, addresses: Mapping[str, str], timings: Timings | None = None) -> None:
        """Open every index.

        Args:
            addresses: the folder or DSN of each index, by name.
            timings: is told how long the steps of each question take.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: one of them cannot be read.
        """
        if not addresses:
            raise BadInput("there is no index to serve: name at least one")
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

    def choose(self, name: str | None) -> ServedIndex:
        """Return the index of this name; without a name, the only one.

        Raises:
            UnknownIndex: there is no such index.
            BadInput: there are several, and no name was given.
        """
        if name is not None:
            return self[name]
        if len(self) > 1:
            raise BadInput(f"several indexes are served: name one as index: {', '.join(self)}")
        return next(iter(self._indexes.values()))

    def warm(self) -> None:
        """Load the encoder of every index, so that the first question does not wait for it."""
        for served in self._indexes.values():
            if served.searcher.recipe is not None and len(served.searcher):
                served.searcher.search("warm", k=1, mode=served.default_mode)

    def without_addresses(self, message: str) -> str:
        """Return a message with the names of indexes in place of their addresses."""
        for served in self._indexes.values():
            message = served.without_address(message)
        return message

    def close(self) -> None:
        """Close every searcher."""
        for served in self._indexes.values():
            served.searcher.close()


def addresses_by_name(arguments: Sequence[str]) -> dict[str, str]:
    """Return name and address of indexes as a command line names them: `FOLDER`, `DSN` or `NAME=` either of them.

    A folder gives its name without `.index`, a DSN that of its parameter `index`.

    Raises:
        BadInput: two indexes have the same name.
    """
    named: dict[str, str] = {}
    for argument in arguments:
        renamed = _RENAMED.fullmatch(argument)
        if renamed and not Path(argument).exists():
            name, address = renamed[1], os.path.expanduser(renamed[2])  # noqa: PTH111 - not every shell expands it here
        else:
            name, address = _name_of(argument), argument
        if name in named:
            raise BadInput(
                f"{without_passwords(named[name])} and {without_passwords(address)} are both named {name!r}: give one "
                f"of them another name, as in other={without_passwords(address)}"
            )
        named[name] = address
    return named


def _name_of(address: str) -> str:
    if is_uri(address):
        name = name_in(address)
    else:
        folder, name = os.path.split(os.path.abspath(address))  # noqa: PTH100 - of "..", the folder's own name
        if name == ".likewise":  # the default index of a folder
            name = os.path.basename(folder)  # noqa: PTH119
        name = name.removesuffix(".index")
    return _UNNAMEABLE.sub("-", name).strip("-") or "index"


def _types(types: Sequence[str], holds_dates: bool) -> list[str]:
    return [*types, *(["date"] if holds_dates else [])]


def _described(values: FieldValues) -> dict[str, Any]:
    return {
        "documents": values.documents,
        "values": [{"value": value, "documents": documents} for value, documents in values.frequent],
        "numbers": values.numbers and {"min": values.numbers[0], "max": values.numbers[1]},
        "days": values.days and {"min": values.days[0], "max": values.days[1]},
    }


def _without_folders(model: str) -> str:
    """Return a model's name; of a model in a folder of this machine, the name of that folder."""
    return Path(model).name if Path(model).is_absolute() or model.startswith((".", "~")) else model
