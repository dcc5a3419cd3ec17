"""Settings as rows of name and text, the form in which every engine stores them. The names never change."""

from __future__ import annotations

import json
from collections.abc import Mapping

from indexer.encoders.recipe import Recipe
from indexer.passages import PassageSettings
from indexer.settings import Calibration, Probed, Settings


def to_rows(settings: Settings) -> dict[str, str]:
    """Return name and text of every setting that there is."""
    recipe, passages = settings.recipe, settings.passages
    cut = {"max_tokens": passages.max_tokens, "overlap": passages.overlap} if passages else None
    rows = {
        "dimensions": str(settings.dimensions),
        "recipe": recipe.to_json() if recipe else "",
        "passages": json.dumps(cut) if cut else "",
        "language": settings.language,
        "recall": None if settings.recall is None else str(float(settings.recall)),
        "lean": None if settings.words_bias is None else str(settings.words_bias),
        "calibration": settings.calibration.to_json() if settings.calibration else None,
        "probed": settings.probed.to_json() if settings.probed else None,
        "uncompiled": settings.uncompiled or None,
    }
    return {name: text for name, text in rows.items() if text is not None}


def from_rows(rows: Mapping[str, str]) -> Settings:
    """Return the settings that `to_rows` made these rows of; rows of other names are left out.

    Raises:
        KeyError, TypeError, ValueError: a row is missing, or is not what was written.
        ModelError: the recipe is not what was written.
    """
    recipe, passages = rows["recipe"], rows["passages"]
    return Settings(
        dimensions=int(rows["dimensions"]),
        recipe=Recipe.from_json(recipe) if recipe else None,
        passages=PassageSettings(**json.loads(passages)) if passages else None,
        language=rows.get("language", "en"),  # indexes of the first version have none
        recall=float(rows["recall"]) if "recall" in rows else None,
        words_bias=float(rows["lean"]) if "lean" in rows else None,
        calibration=Calibration.from_json(rows["calibration"]) if "calibration" in rows else None,
        probed=Probed.from_json(rows["probed"]) if "probed" in rows else None,
        uncompiled=rows.get("uncompiled", ""),
    )
