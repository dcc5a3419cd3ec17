"""The address of what was moved: documents, files and sources that have another path now."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from indexer.errors import BadInput, count_of
from indexer.records import Document
from indexer.stores.hashes import row_hash

_WRONG_TYPES = (AttributeError, TypeError, ValueError)
"""The errors of values of other types than their columns have."""


class Move(NamedTuple):
    """A folder, or a file of records, that has another path now.

    Attributes:
        old, new: the paths, without a separator at the end.
        ends: what follows the path in an address: a separator after a folder, or the id or line of a record.
    """

    old: str
    new: str
    ends: str = os.sep

    def place(self, address: Any) -> Any:
        """Return an address as it is now. Other addresses, and values that are not text, stay as they are."""
        end = len(self.old)
        if isinstance(address, str) and address.startswith(self.old) and address[end : end + 1] in self.ends:
            return self.new + address[end:]
        return address

    def stored(self, address: str) -> str | None:
        """Return the stored form of an address as it is now; None for an address that is so no more."""
        stored = Move(self.new, self.old).place(address)
        return stored if self.place(stored) == address else None

    @classmethod
    def named(cls, old: str, new: str, *, is_file: bool) -> Move:
        """Return the move that a person names."""
        return cls(old.rstrip(os.sep), new.rstrip(os.sep), f"{os.sep}#:" if is_file else os.sep)

    @property
    def range(self) -> tuple[str, str]:
        """Limits between which all addresses are that move, and some others."""
        return self.old, f"{self.old};"  # # / : are before ; in code points

    def rehash(self, recorded: Any, metadata: Any, **members: Any) -> Any:
        """Return the row hash of a document as it is now. A hash that shows damage stays as it is."""
        with suppress(*_WRONG_TYPES):
            document = Document(text="", metadata=json.loads(metadata), **members)
            if row_hash(document) == recorded:
                return row_hash(replace(document, uri=self.place(document.uri), path=self.place(document.path)))
        return recorded

    def sources(self, text: str) -> str:
        """Return the stored setting `sources` with the arguments as they are now."""
        with suppress(KeyError, *_WRONG_TYPES):
            return json.dumps([{**each, "argument": self.place(each["argument"])} for each in json.loads(text)])
        return text

    def taken(self, uris: Sequence[str]) -> BadInput:
        """Return the error for documents that have new addresses already."""
        return BadInput(
            f"{self.new}: {count_of(len(uris), 'document')} of the index already at this place, such as {min(uris)}: "
            "nothing was moved; remove them first"
        )

    def unknown(self) -> BadInput:
        """Return the error for an old path that an index does not have."""
        return BadInput(
            f"{self.old}: the index has no document, file or SOURCE of this name or below it: nothing was moved"
        )
