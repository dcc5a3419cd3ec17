"""Vectors as files that other programs read: JSON lines, CSV, .npy, .safetensors. No model here."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, get_args

import numpy as np

from indexer.encoders.recipe import Recipe
from indexer.errors import BadInput, StorageError
from indexer.records import Vector

Format = Literal["jsonl", "csv", "npy", "safetensors"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True, slots=True)
class Embedded:
    """What one recipe makes of one text.

    Attributes:
        number: of the text, from 0.
        id: the record's own, or the number.
        name: the recipe as it was asked for.
        tokens: names of the rows of `vectors`; None where there is one vector for the text.
        vectors: (dimensions,), or (tokens, dimensions); float32.
    """

    number: int
    id: str | int
    text: str
    name: str
    recipe: Recipe
    tokens: tuple[str, ...] | None
    vectors: Vector


class VectorFile(Protocol):
    """Takes what was embedded, text by text. `close` completes the file."""

    def write(self, rows: Sequence[Embedded]) -> None: ...

    def close(self) -> None: ...


def format_of(path: Path | None, asked: str | None) -> Format:
    """The format that is asked for, or else that of a file's ending; JSON lines without a file.

    Raises:
        BadInput: an ending that says nothing, or a binary format without a file.
    """
    found = asked or (path.suffix.removeprefix(".").lower() if path else "jsonl")
    known = next((each for each in FORMATS if each == found), None)
    if known is None and asked:
        raise BadInput(f"format {asked!r} is none of {', '.join(FORMATS)}")
    if known is None:
        endings = ", ".join(f".{each}" for each in FORMATS)
        raise BadInput(f"{path} has no ending that names a format ({endings}): change it, or give --format")
    if path is None and known in ("npy", "safetensors"):
        raise BadInput(f"{known} is no text to print: give --output FILE.{known}")
    return known


@contextmanager
def open_vectors(path: Path | None, kind: Format) -> Iterator[VectorFile]:
    """A file to write to, or standard output. A file is there when it is complete, and not at all after an error.

    Raises:
        BadInput: a file that cannot be written, or what its format cannot hold.
        StorageError: the disk is full or refuses to be written.
    """
    makers: dict[Format, Callable[[BinaryIO], VectorFile]]
    makers = {"jsonl": JsonLines, "csv": Csv, "npy": Npy, "safetensors": Safetensors}
    if path is None:
        yield makers[kind](sys.stdout.buffer)
        return
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise BadInput(f"{path} is no regular file: name another output")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        file = part.open("w+b")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}): name another output") from error
    try:
        with file:
            writer = makers[kind](file)
            yield writer
            writer.close()
        part.replace(target)
    except OSError as error:  # what else the body reads has errors of its own by now
        raise StorageError(f"{path} cannot be written ({error.strerror}): make room and run again") from error
    finally:
        part.unlink(missing_ok=True)


class JsonLines:
    """A line a text and recipe: id, text, recipe, vector; or tokens and vectors. ASCII."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, rows: Sequence[Embedded]) -> None:
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


class Csv:
    """A row a text and recipe: id, text, recipe, v0, v1, ...; or a row a token, with its name. UTF-8."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._width = file, 0

    def write(self, rows: Sequence[Embedded]) -> None:
        text = io.StringIO(newline="")
        table = csv.writer(text, lineterminator="")
        for row in rows:
            width = row.vectors.shape[-1]
            if not self._width:
                self._width = width
                named = ["token"] if row.tokens is not None else []
                table.writerow(["id", "text", "recipe", *named, *(f"v{at}" for at in range(width))])
                text.write("\n")
            if width != self._width:
                raise BadInput(
                    f"a CSV table has one width, and these recipes give {self._width} and {width} dimensions: "
                    "write .safetensors or .jsonl"
                )
            for at, vector in enumerate(row.vectors.reshape(-1, width)):
                named = [row.tokens[at]] if row.tokens is not None else []
                table.writerow([row.id, row.text, row.name, *named])
                text.write(f",{_numbers(vector)}\n")
        self._file.write(text.getvalue().encode())
        self._file.flush()

    def close(self) -> None:
        """Every row is complete."""


class Npy:
    """One array, float32: (texts, dimensions), or (tokens, dimensions) of one text. Written as it comes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._rows, self._name, self._width = file, 0, "", 0

    def write(self, rows: Sequence[Embedded]) -> None:
        for row in rows:
            if self._width and (row.name != self._name or row.tokens is not None):
                what = "the tokens of one text" if row.tokens is not None else "the vectors of one recipe"
                raise BadInput(f"an .npy file holds one array, {what}: write .safetensors or .jsonl")
            if not self._width:
                self._name, self._width = row.name, row.vectors.shape[-1]
                self._header()
            block = np.ascontiguousarray(row.vectors.reshape(-1, self._width), "<f4")
            self._file.write(block.tobytes())
            self._rows += len(block)

    def close(self) -> None:
        """Write the header again: numpy leaves room in it for the number of rows to grow."""
        self._file.seek(0)
        self._header()

    def _header(self) -> None:
        shape = (self._rows, self._width)
        np.lib.format.write_array_header_1_0(self._file, {"descr": "<f4", "fortran_order": False, "shape": shape})


class Safetensors:
    """A tensor a recipe, by its name: (texts, dimensions); or one a text, `RECIPE/NUMBER`: (tokens, dimensions).

    Metadata hold each recipe, and the tokens of each text, as JSON. The format needs all sizes first, so
    everything is kept in memory until it is written.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._vectors: dict[str, list[Vector]] = {}
        self._tokens: dict[str, Vector] = {}
        self._metadata: dict[str, str] = {}

    def write(self, rows: Sequence[Embedded]) -> None:
        for row in rows:
            self._metadata.setdefault(row.name, json.dumps(asdict(row.recipe)))
            if row.tokens is None:
                self._vectors.setdefault(row.name, []).append(row.vectors)
            else:
                key = f"{row.name}/{row.number}"
                self._tokens[key] = np.ascontiguousarray(row.vectors)
                self._metadata[key] = json.dumps(row.tokens)

    def close(self) -> None:
        from safetensors.numpy import save

        tensors = {name: np.stack(rows) for name, rows in self._vectors.items()}
        self._file.write(save(tensors | self._tokens, self._metadata))


def _numbers(vector: Vector) -> str:
    """Numbers with commas between: 9 digits tell any float32 from its neighbours, and are written fast."""
    return ",".join(["%.9g"] * len(vector)) % tuple(vector.tolist())
