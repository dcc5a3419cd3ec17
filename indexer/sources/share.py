"""Shares of a source: processes that do not know of each other divide its documents by their uris."""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from typing import Self

from indexer.errors import BadInput
from indexer.sources.formats import FORMATS
from indexer.sources.source import STDIN


@dataclass(frozen=True, slots=True)
class Share:
    """The documents of one of `count` processes, which number from 1 on."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read I/N. Raises BadInput for anything else."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise BadInput(f"share {text!r:.40} is not I/N with I from 1 to N: write 1/8 to 8/8 for eight processes")
        return cls(int(match[1]), int(match[2]))

    def __contains__(self, uri: str) -> bool:
        return zlib.crc32(uri.encode("utf-8", "surrogatepass")) % self.count == self.number - 1

    def has(self, file: str, uri: str) -> bool:
        """Return whether a file or record belongs to this share."""
        return (uri if is_divided(file) else file) in self


def is_divided(file: str) -> bool:
    """Return whether each record of a file belongs to a share of its own. Every process then reads the file."""
    extension = os.path.splitext(file)[1].lower()  # noqa: PTH122
    return file == STDIN or (extension in FORMATS and FORMATS[extension].kind == "records")
