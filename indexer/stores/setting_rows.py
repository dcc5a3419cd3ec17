"""Settings as rows of name and text, the form in which every engine stores them. The names never change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from indexer.encoders.recipes.recipe import Recipe
from indexer.errors import ModelError
from indexer.passages.cut import PassageSettings
from indexer.settings import Calibration, MapRecord, Probed, Settings, sources_from_json, sources_to_json


def to_rows(settings: Settings) -> dict[str, str]:
    """Return every setting that has a value, by its stored name, as text."""
    recipe, passages = settings.recipe, settings.passages
    cut = {"max_tokens": passages.max_tokens, "overlap": passages.overlap} if passages else None
    rows = {
        "dimensions": str(settings.dimensions),
        "recipe": recipe.to_json() if recipe else "",
        "passages": json.dumps(cut) if cut else "",
        "language": settings.language,
        "language_open": "1" if settings.language_open else None,
        "language_noted": "1" if settings.language_noted else None,
        "columns": "1" if settings.columns_searched else None,
        "model_reason": settings.model_reason or None,
        "model_open": json.dumps(settings.model_open) if settings.model_open else None,
        "recall": None if settings.recall is None else str(float(settings.recall)),
        "lean": None if settings.words_bias is None else str(settings.words_bias),
        "calibration": settings.calibration.to_json() if settings.calibration else None,
        "probed": settings.probed.to_json() if settings.probed else None,
        "uncompiled": settings.uncompiled or None,
        "map": settings.map.to_json() if settings.map else None,
        "sources": sources_to_json(settings.sources) if settings.sources else None,
    }
    return {name: text for name, text in rows.items() if text is not None}


def from_rows(rows: Mapping[str, str]) -> Settings:
    """Return the settings of stored rows; rows of other names are ignored.

    Values that were measured or learned are left out if they cannot be read, because the index is complete without
    them; `unreadable` names them.

    Raises:
        KeyError, TypeError, ValueError: a row that defines the index is missing, or cannot be read.
    """
    recipe, passages = rows["recipe"], rows["passages"]
    learned: dict[str, Any] = {name: _learned(rows, name) for name in _LEARNED}
    try:
        return Settings(
            dimensions=int(rows["dimensions"]),
            recipe=Recipe.from_json(recipe) if recipe else None,
            passages=PassageSettings(**json.loads(passages)) if passages else None,
            language=rows["language"],
            language_open=rows.get("language_open") == "1",
            language_noted=rows.get("language_noted") == "1",
            columns_searched=rows.get("columns") == "1",
            model_reason=rows.get("model_reason", ""),
            model_open=tuple(json.loads(rows["model_open"])) if "model_open" in rows else None,
            recall=learned["recall"],
            words_bias=learned["lean"],
            calibration=learned["calibration"],
            probed=learned["probed"],
            uncompiled=rows.get("uncompiled", ""),
            map=learned["map"],
            sources=learned["sources"] or (),
        )
    except ModelError as error:  # this error would blame the model
        raise ValueError(str(error)) from error


def unreadable(rows: Mapping[str, str]) -> list[str]:
    """Return the names of measured or learned settings that cannot be read."""
    return [name for name in _LEARNED if name in rows and _learned(rows, name) is None]


_LEARNED: Mapping[str, Callable[[str], object]] = {
    "recall": float,
    "lean": float,
    "calibration": Calibration.from_json,
    "probed": Probed.from_json,
    "map": MapRecord.from_json,
    "sources": sources_from_json,
}


def _learned(rows: Mapping[str, str], name: str) -> object:
    try:
        return _LEARNED[name](rows[name]) if name in rows else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # `unreadable` names it
