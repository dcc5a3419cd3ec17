"""The commands that follow a state, and the description of the state afterwards, for test_states.py.

A state is what a killed command has left (kill.py): a folder that holds x.index and what is hidden beside it, or a
database with its rows and schemas. Everything here goes through the command line and the public `Index`, so that
programs of before and after a change can be compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from indexer import Index
from indexer.errors import NothingKnown

HERE = Path(__file__).parent / "states"

FIRST: dict[str, Any] = {"name": "first", "weights": "2", "max_tokens": 16}
"""The encoder that the indexes were made with. The other one is the word encoder that every --model names here."""

COUNT = 6
NEW = json.dumps({"id": "new", "title": "title new", "text": "A new document, and the number 3 again."}) + "\n"
RECORDS = "".join(
    json.dumps({"id": f"d{i}", "title": f"title {i}", "text": f"text{i} of some words, and the number {i} again."})
    + "\n"
    for i in range(COUNT)
)

SCRIPTS: dict[str, list[list[str]]] = {
    "read": [],
    "write": [["index", "{x}", "-"]],
    "migrate": [["migrate", "{x}", "--model", "words", "--yes"], ["migrate", "{x}", "--drop"]],
    "back": [["index", "{x}", "-"], ["migrate", "{x}", "--back"], ["migrate", "{x}", "--back"]],
    "drop": [["migrate", "{x}", "--drop"]],
    "rebuild": [["index", "{x}", "-", "--rebuild"]],
    "write and rebuild": [["index", "{x}", "-"], ["index", "{x}", "-", "--rebuild"]],
    "copy": [["copy", "{x}", "{copy}"]],
    "migrate and copy": [["migrate", "{x}", "--model", "words", "--yes"], ["copy", "{x}", "{copy}"]],
    "drop the copy": [["copy", "{copy}", "--drop"]],
}
"""Commands. A command that ends in "-" reads NEW. {x} and {copy} are addresses."""

SIDE_BY_SIDE = ("read", "write", "migrate", "back", "drop", "rebuild")
COPYING = ("read", "write", "copy", "migrate and copy", "drop the copy")
LIVE = ("read", "write", "rebuild")

FOLDER_STATES: dict[str, tuple[str, ...]] = {
    "half": SIDE_BY_SIDE,
    "whole": SIDE_BY_SIDE,
    "previous": SIDE_BY_SIDE,
    "next out": SIDE_BY_SIDE,
    "next swapped": SIDE_BY_SIDE,
    "next in": SIDE_BY_SIDE,
    "previous out": SIDE_BY_SIDE,
    "previous swapped": SIDE_BY_SIDE,
    "previous in": SIDE_BY_SIDE,
    "making next": SIDE_BY_SIDE,
    "dropping": SIDE_BY_SIDE,
    "stale mark": SIDE_BY_SIDE,
    "copied": COPYING,
    "rebuilding": LIVE,
    "beginning a rebuild": LIVE,
    "creating": ("write", "write and rebuild"),
}
"""The states of a folder after a kill, each with the names of its scripts."""

DATABASE_STATES: dict[str, tuple[str, ...]] = {
    "half": SIDE_BY_SIDE,
    "whole": SIDE_BY_SIDE,
    "previous": SIDE_BY_SIDE,
    "dropping": SIDE_BY_SIDE,
    "unfinished": COPYING,
    "rebuilding": LIVE,
}
"""The same of a database."""

INSIDE = {"next", "previous", "beside", ".next", ".dropped"}
"""The names in the folder of an index that tell of other indexes."""


class Likewise(Protocol):
    """A command line, run in this process."""

    def __call__(self, *arguments: str | Path, stdin: str | bytes = ...) -> Any: ...


@dataclass(frozen=True)
class FolderState:
    """A folder with a state."""

    folder: Path

    def address(self, name: str) -> str:
        return str(self.folder / f"{name}.index")

    def names(self) -> list[str]:
        """Return the content of the folder, and what an index in it reports about other indexes. Random digits are left
        out."""
        found = [re.sub(r"\.[0-9a-f]{8}\b", ".HEX", path.name) for path in self.folder.iterdir()]
        found += [f"{path.parent.name}/{path.name}" for path in self.folder.glob("*/*") if path.name in INSIDE]
        return sorted(found)


@dataclass(frozen=True)
class DatabaseState:
    """A database with a state."""

    uri: str

    def address(self, name: str) -> str:
        return f"{self.uri}{'&' if '?' in self.uri else '?'}index={quote(name, safe='')}"

    def names(self) -> list[str]:
        """The rows of the indexes, without random digits, and the schemas that no row names."""
        import psycopg

        with psycopg.connect(self.uri) as connection:
            rows = connection.execute("SELECT name, tables FROM likewise.index").fetchall()
            schemas = connection.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'likewise\\__%'"
            ).fetchall()
        named = {tables for _, tables in rows}
        found = [re.sub(r"[0-9a-f]{16}$", "HEX", name) for name, _ in rows]
        return sorted(found) + ["a schema without a row" for (name,) in schemas if name not in named]


GoldenState = FolderState | DatabaseState


def blind_to(letter: str) -> dict[str, Any]:
    """Return the settings of the word encoder that is made blind to a letter."""
    return {"name": f"blind to {letter}", "weights": letter}


def make_blind(encoder: Any, letter: str) -> None:
    """Have a word encoder know no text with this letter."""
    offsets = encoder.offsets

    def ask(texts: Sequence[str]) -> None:
        if unknown := [number for number, text in enumerate(texts) if letter in text]:
            raise NothingKnown(unknown, encoder.name)

    encoder.ask = ask
    encoder.offsets = lambda texts: [
        found[:0] if letter in text else found for text, found in zip(texts, offsets(texts), strict=True)
    ]


GREEK, CYRILLIC = "λ", "ж"
"""The texts that the models of the golden pair cannot read: the model of the live index, and the previous model."""


def outcome(likewise: Likewise, state: GoldenState, script: str, encoders: Sequence[Any]) -> dict[str, Any]:
    """Run a script on a state; return what everybody can see of it afterwards."""
    for encoder in encoders:
        encoder.seen.clear()
    places = {"{x}": state.address("x"), "{copy}": state.address("copy")}
    codes = []
    for command in SCRIPTS[script]:
        said = likewise(*(places.get(word, word) for word in command), stdin=NEW if "-" in command else "")
        codes.append(said.code)
    embedded = {title[1] for encoder in encoders for text in encoder.seen if (title := re.match(r"title (\w+)", text))}
    found: dict[str, Any] = {
        "codes": codes,
        "x": seen(likewise, places["{x}"]),
        "copy": seen(likewise, places["{copy}"]),
    }
    if script in ("migrate", "copy"):  # whatever is in the kept half is not embedded again
        found["embedded"] = sorted(embedded)
    return found | {"names": state.names()}


def seen(likewise: Likewise, address: str) -> dict[str, Any] | None:
    """Return what readers find at an address, None where there is no index."""
    said = likewise("info", address, "--json")
    if said.code:
        return None
    info = said.json
    hits = likewise("search", address, "the number 3", "-k", "2", "--json")
    assert hits.code == 0, hits.err
    with Index.open(address) as index:
        held = {document.uri: document.text for document in index}
    beside = info["beside"] and [info["beside"]["place"], info["beside"]["model"]]
    assert len(held) == info["documents"]
    return {
        "model": info["model"],
        "beside": beside,
        "documents": sorted(held),
        "hits": [hit["uri"] for hit in hits.json["hits"]],
        "check": likewise("check", address).code,
    }
