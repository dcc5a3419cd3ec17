"""Consequences of the languages of texts for an index: its language for searches by words, and notes for its user."""

from __future__ import annotations

from collections.abc import Mapping

from indexer.encoders import Recipe
from indexer.errors import IndexDamaged, Message
from indexer.languages.detect import NAMES, SAMPLE_TEXTS, languages_of, named
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.words.analysis import DEFAULT, LANGUAGES

MIN_STEMMER_SHARE = 0.1
"""Minimum share of a language that decides how words are searched, if a more frequent language has no stemmer."""

MIN_UNREAD_SHARE = 0.2
"""Warn the user if the model cannot read at least this share of the texts."""

MIN_OTHER_SHARE = 0.8
"""Warn the user if at least this share of new texts is in another language than the index."""

UNSPACED_LANGUAGES = frozenset(("zh", "ja", "ko", "th", "lo", "km", "my"))
"""Languages whose pairs of characters are indexed, whatever the language of the index."""


def word_language(shares: Mapping[str, float]) -> str:
    """Return the language in which words are searched: the code of a stemmer, or `none`.

    It is the most frequent language that has a stemmer. In a mixed collection, a stemmer for some of the texts finds
    more than no stemmer, even among the other texts (docs/measured.md). Scripts without spaces do not count, because
    no stemmer sees them.

    Args:
        shares: share of each language, the most frequent first.
    """
    spaced = {code: share for code, share in shares.items() if code not in UNSPACED_LANGUAGES}
    total = sum(spaced.values())
    if not spaced:
        return DEFAULT
    stemmed = (code for code, share in spaced.items() if code in LANGUAGES and share >= MIN_STEMMER_SHARE * total)
    return next(stemmed, "none")


def languages_of_index(snapshot: Snapshot) -> dict[str, float]:
    """Return the share of each language in a sample of the documents; empty if documents are damaged.

    A sample of the passages would have a few long documents, and not the many short ones.
    """
    try:
        uris = snapshot.uris()
        drawn = uris[:: -(-len(uris) // SAMPLE_TEXTS) or 1]
        return languages_of([document.text for uri in drawn if (document := snapshot.get(uri)) is not None])
    except IndexDamaged:  # `likewise check` says what is wrong
        return {}


def notes_on_texts(recipe: Recipe | None, language: str, shares: Mapping[str, float]) -> list[str]:
    """Return the notes on texts of these languages in an index with this model and language."""
    unread = unread_note(recipe, shares) if recipe is not None else None
    return list(filter(None, (unread, other_language_note(language, shares))))


def unread_note(recipe: Recipe, shares: Mapping[str, float]) -> str | None:
    """Return a note if a model cannot read a large part of the texts, with models that can; None if it may read
    them."""
    from indexer.languages.models import models_that_read, reads_english_alone

    others = {code: share for code, share in shares.items() if code != "en"}
    if sum(others.values()) < MIN_UNREAD_SHARE or not reads_english_alone(recipe):
        return None
    models = models_that_read([code for code, share in others.items() if share >= 0.01])
    return Message(
        f"these texts are {named(shares)}, but {recipe.model} reads English alone: searches by meaning will find "
        f"little in the others. Models that read them: {', '.join(models)}",
        " (--model; an index that exists changes to one with likewise migrate INDEX --model multilingual-e5-small)",
    )


def other_language_note(language: str, shares: Mapping[str, float]) -> str | None:
    """Return a note if most new texts are in another language than words are searched in; otherwise None."""
    other = word_language(shares)
    if language == "none" or other in (language, "none") or shares.get(other, 0.0) < MIN_OTHER_SHARE:
        return None
    return Message(
        f"these texts are {named(shares)}, but the index searches words as {NAMES[language]}: "
        f"an index made or rebuilt with the language {other} finds more word forms",
        f" (--language {other})",
    )
