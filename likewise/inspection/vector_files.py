"""Writing vectors to files that other programs read: JSON lines and .npy."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import numpy as np

from indexer.errors import BadInput, storage_error
from indexer.records import Vector

Format = Literal["jsonl", "npy"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """The vectors that one recipe gives for one text.

    Attributes:
        id: id of the record, or the number of the text, counted from 0.
        name: the recipe as the user wrote it.
        tokens: names of the rows of `vectors`; None if there is one vector for the text.
        vectors: (dimensions,), or (tokens, dimensions); float32.
    """

    id: str | int
    text: str
    name: str
    tokens: tuple[str, ...] | None
    vectors: Vector


def format_of(path: Path | None, requested: str | None) -> Format:
    """Return the requested format, or else that of the file's ending; JSON lines without a file.

    Raises:
        BadInput: the format or the ending is unknown, or npy has no file.
    """
    name = requested or (path.suffix.removeprefix(".").lower() if path else "jsonl")
    chosen = next((each for each in FORMATS if each == name), None)
    if chosen is None and requested:
        raise BadInput(f"format {requested!r} is not one of {', '.join(FORMATS)}")
    if chosen is None:
        endings = ", ".join(f".{each}" for each in FORMATS)
        raise BadInput(f"{path} has no ending that names a format ({endings}): change it, or give --format")
    if path is None and chosen == "npy":
        raise BadInput("npy is not text that can be printed: give --output FILE.npy")
    return chosen


@contextmanager
def open_vectors(path: Path | None, kind: Format) -> Iterator[JsonLines | Npy]:
    """Open a file to write, or standard output. The file appears when it is complete, and never after an error.

    Args:
        path: of the file; None for standard output.

    Raises:
        BadInput: the file cannot be written, or its format cannot hold the vectors.
        StorageError: the disk is full or cannot be written.
    """
    if path is None:
        yield JsonLines(sys.stdout.buffer)
        return
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise BadInput(f"{path} is not a regular file: name another output")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        file = part.open("w+b")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}): name another output") from error
    try:
        with file:
            writer = Npy(file) if kind == "npy" else JsonLines(file)
            yield writer
            writer.close()
        part.replace(target)
    except OSError as error:  # What the body itself reads raises errors of likewise.
        raise storage_error(f"{path} cannot be written ({error.strerror}): make room and run again", error) from error
    finally:
        part.unlink(missing_ok=True)


class JsonLines:
    """One JSON object per line, text and recipe: id, text, recipe, vector; or tokens and vectors. ASCII."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, rows: Sequence[EmbeddedText]) -> None:
        for row in rows:
            about: dict[str, Any] = {"id": row.id, "text": row.text, "recipe": row.name}
            if row.tokens is None:
                last = f'"vector": [{_numbers(row.vectors)}]'
            else:
                about["tokens"] = row.tokens
                last = f'"vectors": [{", ".join(f"[{_numbers(vector)}]" for vector in row.vectors)}]'
            self._file.write(f"{json.dumps(about)[:-1]}, {last}}}\n".encode())
        self._file.flush()

    def close(self) -> None:
        """Every line is complete."""


class Npy:
    """One float32 array: (texts, dimensions), or (tokens, dimensions) of one text. Rows are written as they come."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._rows, self._name, self._width = file, 0, "", 0

    def write(self, rows: Sequence[EmbeddedText]) -> None:
        for row in rows:
            if self._width and (row.name != self._name or row.tokens is not None):
                what = "the tokens of one text" if row.tokens is not None else "the vectors of one recipe"
                raise BadInput(f"an .npy file holds one array, {what}: write .jsonl")
            if not self._width:
                self._name, self._width = row.name, row.vectors.shape[-1]
                self._header()
            block = np.ascontiguousarray(row.vectors.reshape(-1, self._width), "<f4")
            self._file.write(block.tobytes())
            self._rows += len(block)

    def close(self) -> None:
        """Write the header again, now with the number of rows: numpy leaves room for it."""
        self._file.seek(0)
        self._header()

    def _header(self) -> None:
        shape = (self._rows, self._width)
        np.lib.format.write_array_header_1_0(self._file, {"descr": "<f4", "fortran_order": False, "shape": shape})


def _numbers(vector: Vector) -> str:
    """Return the numbers, separated by commas. 9 digits identify any float32, and are fast to write."""
    return ",".join(["%.9g"] * len(vector)) % tuple(vector.tolist())
