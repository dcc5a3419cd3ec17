"""The file of a map: safetensors beside the index, whose checksum the index's settings name.

The file is derived: an index without it is complete, and a file that does not match its checksum is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.errors import storage_error
from indexer.settings import MapRecord
from likewise.map.projection import Places
from likewise.map.regions import Region

NAME = "map.safetensors"
NAMES_VERSION = 2
"""Version of the rules that name regions. A map with names of another version is outdated."""


@dataclass(frozen=True)
class Map:
    """A map.

    Attributes:
        uris: the document of each place.
        places: (documents, 2).
        regions: named regions.
        names_version: the rules that named the regions.
    """

    uris: tuple[str, ...]
    places: Places
    regions: tuple[Region, ...]
    names_version: int = NAMES_VERSION


def write_map(folder: Path, drawn: Map) -> MapRecord:
    """Write the file in one step and return its record for the settings.

    Raises:
        StorageError: the disk refuses.
    """
    from safetensors.numpy import save

    names = json.dumps(drawn.uris).encode()
    tensors: dict[str, NDArray[Any]] = {
        "places": np.ascontiguousarray(drawn.places, np.float32),
        "uris": np.frombuffer(names, np.uint8),
    }
    regions = json.dumps([asdict(region) for region in drawn.regions])
    content = save(tensors, {"regions": regions, "names": str(drawn.names_version)})
    temporary = folder / f"{NAME}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(folder / NAME)
    except OSError as error:
        message = f"{folder / NAME}: {error.strerror}: the map was not written; solve this, and draw it again"
        raise storage_error(message, error) from error
    return MapRecord(hashlib.sha256(content).hexdigest(), len(drawn.uris))


def read_map(folder: Path, record: MapRecord | None) -> Map | None:
    """Return the map of this record; None if there is no map, or if its file is missing or damaged."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load

    if record is None:
        return None
    try:
        content = (folder / NAME).read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != record.sha256:
        return None
    try:
        tensors = load(content)
        with safe_open(folder / NAME, "numpy") as file:
            metadata = file.metadata()
            regions = json.loads(metadata["regions"])
    except (SafetensorError, KeyError, ValueError):
        return None
    return Map(
        tuple(json.loads(tensors["uris"].tobytes())),
        tensors["places"],
        tuple(Region(**{**region, "terms": tuple(region["terms"])}) for region in regions),
        int(metadata.get("names", 1)),
    )


def damage_of_map(folder: Path, record: MapRecord | None) -> str:
    """Return the damage of the file of this record; empty if the file is sound, or if there is no map."""
    if record is None or not (folder / NAME).exists() or read_map(folder, record) is not None:
        return ""
    return f"the map {folder / NAME} is damaged"


def outdated(record: MapRecord, uris: Sequence[str], drawn: Map) -> bool:
    """Return whether a quarter of the documents has come or gone since the map was drawn, or its names are old."""
    changed = len(set(drawn.uris).symmetric_difference(uris))
    return drawn.names_version != NAMES_VERSION or 4 * changed >= max(1, record.documents)
