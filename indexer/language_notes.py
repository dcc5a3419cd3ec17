"""What the languages of texts mean for an index: its language for searches by words, and what its user should know."""

from __future__ import annotations

from collections.abc import Mapping

from indexer.encoders import Recipe
from indexer.languages import NAMES, named
from indexer.stores.analysis import LANGUAGES

MIN_STEMMER_SHARE = 0.1
"""Share of the texts from which a language decides how words are searched, if a more frequent one has no stemmer."""

MIN_UNREAD_SHARE = 0.2
"""Share of the texts that a model does not read from which its user is told."""

MIN_OTHER_SHARE = 0.8
"""Share of new texts in another language than the index's from which its user is told."""

_UNSPACED = frozenset(("zh", "ja", "ko", "th", "lo", "km", "my"))
"""Languages of which pairs of characters are indexed, whatever the language of the index."""

DEFAULT = "en"
"""The language of an index whose texts do not say which."""


def word_language(shares: Mapping[str, float]) -> str:
    """Return the language in which words are searched: the code of a stemmer, or `none`.

    It is the most frequent one that has a stemmer. In mixed collections a stemmer of some of the texts finds more than
    none, also among the others (docs/languages.md). Scripts without spaces do not count, because no stemmer sees them.

    Args:
        shares: share of each language, the most frequent first.
    """
    spaced = {code: share for code, share in shares.items() if code not in _UNSPACED}
    total = sum(spaced.values())
    if not spaced:
        return DEFAULT
    stemmed = (code for code, share in spaced.items() if code in LANGUAGES and share >= MIN_STEMMER_SHARE * total)
    return next(stemmed, "none")


def unread_note(recipe: Recipe, shares: Mapping[str, float]) -> str | None:
    """Return that a model does not read a good part of the texts, and which do; None if it may well read them."""
    from indexer.encoders.known_languages import models_that_read, reads_english_alone

    others = {code: share for code, share in shares.items() if code != "en"}
    if sum(others.values()) < MIN_UNREAD_SHARE or not reads_english_alone(recipe):
        return None
    models = models_that_read([code for code, share in others.items() if share >= 0.01])
    return (
        f"these texts are {named(shares)}, but {recipe.model} reads English alone: searches by meaning will find "
        f"little in the others. Models that read them: {', '.join(models)} (--model; an index that "
        "exists changes to one with likewise migrate)"
    )


def other_language_note(language: str, shares: Mapping[str, float]) -> str | None:
    """Return that new texts are mostly in another language than words are searched in; None if they are not."""
    other = word_language(shares)
    if language == "none" or other in (language, "none") or shares.get(other, 0.0) < MIN_OTHER_SHARE:
        return None
    return (
        f"these texts are {named(shares)}, but the index searches words as {NAMES[language]}: "
        f"an index made with --language {other}, or rebuilt with it, finds more word forms"
    )
