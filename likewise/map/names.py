"""Names for the regions of a map: phrases that occur in a region and not elsewhere, and places such as folders.

The score of a phrase is a product of five: the share of the region's documents that have it, the logarithm of how much
more frequent it is there than elsewhere, how often documents repeat it, its length, and how similar the documents with
it are. A text repeats what it is about, in any language, but not its verbs and adverbs (Church and Gale, Poisson
mixtures, 1995), and documents with a word that any text may have are not similar. Names of people are left out. The
tables, mailboxes and folders of documents compete with phrases. Documents that a term names count less for the next
one, so that the terms together name most documents of a region of several subjects. A region without a term gets the
title of its most central document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.records import Document, Vector
from indexer.stores.words.analysis import Analysis
from likewise.map.phrases import TITLE_CHARACTERS, Phrase, read_phrases

_TERMS = 3
"""Maximum terms of a name, and one more if they leave much of a region without one."""
_MAX_PLACES = 2
"""Maximum places among the terms of a name, unless they leave much of a region without one. The others are phrases."""
_READ_DOCUMENTS = 10_000
"""Maximum documents that are read, evenly spread."""
_MIN_DOCUMENTS = 3
"""Minimum documents that a term of a name adds to those with the terms before it."""
_MIN_SHARE = 0.1
"""Minimum share of a region's documents that a term adds."""
_MIN_LIFT = 2.0
"""Minimum ratio of the share of a region's documents with a term to the share elsewhere."""
_RARE = 0.003
"""Share of documents that is added to those elsewhere, because the lift of rare phrases is chance."""
_MIN_OF_BEST = 0.1
"""Minimum score of a further term, as a share of the first one's."""
_WHOLE = 0.75
"""Minimum documents and score of a longer phrase that replaces a phrase, as a share of those of the phrase."""
_LENGTH_WEIGHTS = (1.0, 1.9, 2.3)
"""Weights of phrases of one, two, and three or more words: "stem cells" says more than "cells"."""
_PLACE_WEIGHT = 2.0
"""Score of a place that has all documents of a region."""
_MIN_OF_PLACE = 0.4
"""Minimum share of the documents of a place that are in a region which it names: what is in many regions says little of
one. Tables are named anyway, because their cells say less."""
_MIN_NAMED = 0.5
"""Minimum share of a region's documents that have phrases which say more of the documents of a place."""
_ENOUGH = 0.6
"""Share of a region's documents with a term from which a name has no further one."""
_AGAIN = 0.4
"""Weight of a document that another term names already."""
_CANDIDATES = 200
_MEAN_DOCUMENTS = 5
"""Documents with the mean rate of repetition that are added to those of a phrase: a rate of few says little."""
_UNREPEATED = 0.05
"""Rate of repetition that every phrase has, because short texts repeat nothing."""
_SIMILAR = 0.05
"""Mean cosine of documents with a phrase that counts half."""
_PERSON = 3
"""A word is taken for a person's if at least one in this many of its documents has it in a name before an address."""
_MIN_PART = 3
"""Minimum letters of a stem that another stem may not contain."""


class Names:
    """Names regions of one collection by the phrases of its documents."""

    def __init__(self, documents: Sequence[Document], vectors: Vector, analysis: Analysis) -> None:
        from scipy.sparse import csr_array

        self._read = slice(None, None, -(-len(documents) // _READ_DOCUMENTS))
        self._documents, self._vectors = documents, vectors - vectors.mean(axis=0)
        self._phrases = read_phrases(documents[self._read], analysis)
        frequency = Counter(chain.from_iterable(self._phrases.of_documents))
        people = {word for word, count in self._phrases.people.items() if frequency[word,] <= _PERSON * count}
        self._terms = sorted(
            term for term, count in frequency.items() if count >= _MIN_DOCUMENTS and not people.issuperset(term)
        )
        position = {term: at for at, term in enumerate(self._terms)}
        columns, counts, ends = list[int](), list[int](), [0]
        for phrases in self._phrases.of_documents:
            known = sorted(phrases.keys() & position.keys())
            columns += [position[term] for term in known]
            counts += [phrases[term] for term in known]
            ends.append(len(columns))
        shape, cells = (len(ends) - 1, len(self._terms)), np.array(columns, np.int32)
        self._has = csr_array((np.ones(len(cells), np.float32), cells, np.array(ends)), shape)
        repeated = np.bincount(cells, np.array(counts) > 1.0, len(self._terms))
        self._is_place = np.array([term[0].startswith("/") for term in self._terms], bool)
        is_table = [term[0].endswith((".csv", ".tsv")) for term in self._terms]
        self._min_of_place = np.where(is_table, 0, _MIN_OF_PLACE)
        # In a script without spaces, a stem is one character, and two of them count as one word.
        words = [len(term) if len(term[0]) > 1 else len(term) / 2 for term in self._terms]
        self._quality = np.interp(words, (1, 2, 3), _LENGTH_WEIGHTS) * (_UNREPEATED + self._repeat_rates(repeated))

    def _repeat_rates(self, repeated: NDArray[Any]) -> NDArray[np.floating]:
        """Return for each term the share of its documents that repeat it; for a longer one at least the smallest share
        of its words, because texts shorten a phrase when they repeat it."""
        documents = self._has.sum(axis=0)
        mean = repeated.sum() / max(1, documents.sum())
        rates = dict(zip(self._terms, (repeated + _MEAN_DOCUMENTS * mean) / (documents + _MEAN_DOCUMENTS), strict=True))
        words = ([rates[word,] for word in term if (word,) in rates] for term in self._terms)  # none without spaces
        return np.array([max(rates[term], min(of, default=0)) for term, of in zip(self._terms, words, strict=True)])

    def of_regions(self, regions: NDArray[np.intp], count: int) -> Iterator[tuple[str, ...]]:
        """Yield the name of each region.

        Args:
            regions: the region of each document.
            count: number of regions.
        """
        read = regions[self._read]
        everywhere = self._has.sum(axis=0)
        for region in range(count):
            inside = np.flatnonzero(regions == region)
            rows = np.flatnonzero(read == region)
            has = self._has[rows].sum(axis=0)
            share = has / max(1, len(rows))
            lift = share / ((everywhere - has) / max(1, len(read) - len(rows)) + _RARE)
            information = np.log(np.maximum(lift, 1))
            of_places = _PLACE_WEIGHT * np.minimum(information / np.log(_MIN_LIFT), 1)
            scores = np.where(self._is_place, of_places, information * self._quality)
            is_elsewhere = np.where(self._is_place, has < self._min_of_place * everywhere, lift < _MIN_LIFT)
            scores[(share < _MIN_SHARE) | is_elsewhere] = 0
            best = np.argsort(-scores * share, kind="stable")[:_CANDIDATES]
            best = best[scores[best] > 0]
            scores = scores[best] * np.where(self._is_place[best], 1, self._similarity(best))
            yield self._chosen(best, scores, self._has[rows][:, best].toarray() > 0) or self._central(inside)

    def _similarity(self, terms: NDArray[np.intp]) -> NDArray[np.floating]:
        """Return for each term 0 to 1: how similar two documents with it are."""
        has, vectors = self._has[:, terms].T, self._vectors[self._read]
        documents, length = has.sum(axis=1), has @ (vectors**2).sum(axis=1)
        pairs = ((has @ vectors) ** 2).sum(axis=1) - length
        cosine = np.maximum(pairs / np.maximum(documents - 1, 1) / np.maximum(length, 1e-9), 0)
        return np.asarray(cosine / (cosine + _SIMILAR))

    def _chosen(self, best: NDArray[np.intp], scores: NDArray[np.floating], has: NDArray[np.bool_]) -> tuple[str, ...]:
        """Return the terms of a name, places first: each for documents that those before it do not have, and each
        phrase as long as most documents have it."""
        terms, places = [self._terms[term] for term in best], self._is_place[best]
        named = np.zeros((2, len(has), 1), bool)  # by phrases, and by places
        names, least, documents = list[int](), 0.0, has.sum(axis=0)
        while terms and len(names) <= _TERMS:
            again = np.where(named, _AGAIN, 1)
            new = np.where(places, ~named[1], again[0]) * has
            gains = scores * (new * np.where(places, again[0], again[1])).mean(axis=0)
            gains[new.sum(axis=0) < max(_MIN_DOCUMENTS, _MIN_SHARE * len(has))] = 0
            gains[[any(_is_alike(term, terms[name]) for name in names) for term in terms]] = 0
            is_enough = named.any(axis=0).mean() >= _ENOUGH
            gains[places & (is_enough & (places[names].sum() >= _MAX_PLACES))] = 0
            term = int(gains.argmax())
            if gains[term] <= least or (is_enough and len(names) == _TERMS):
                break
            least = least or _MIN_OF_BEST * gains[term]
            longer = (at for at, phrase in enumerate(terms) if _is_within(terms[term], phrase))
            whole = (at for at in longer if all(of[at] >= _WHOLE * of[term] for of in (documents, scores)))
            names.append(max(whole, key=lambda at: (len(terms[at]), documents[at]), default=term))
            named[int(places[term])] |= has[:, term, None]
        by_phrases, by_places = named[:, :, 0]
        if by_phrases.sum() < _MIN_NAMED * len(has):
            names = [
                name for name in names if (by_places & has[:, name]).sum() * 2 <= has[:, name].sum() or places[name]
            ]
        return tuple(self._phrases.written(terms[name]) for name in sorted(names, key=lambda name: not places[name]))

    def _central(self, inside: NDArray[np.intp]) -> tuple[str, ...]:
        """Return the title of the document that is nearest to the middle of a region."""
        nearness = self._vectors[inside] @ self._vectors[inside].sum(axis=0)
        for document in inside[np.argsort(-nearness, kind="stable")]:
            if title := " ".join(self._documents[document].title.split()):
                return (title if len(title) <= TITLE_CHARACTERS else title[: TITLE_CHARACTERS - 1].rstrip() + "…",)
        return ()


def _is_alike(one: Phrase, other: Phrase) -> bool:
    """Return whether a stem of one phrase is a part of a stem of the other: such phrases say the same twice."""
    pairs = (sorted((word, its), key=len) for word in one for its in other)
    return any(short == long or (len(short) >= _MIN_PART and short in long) for short, long in pairs)


def _is_within(part: Phrase, whole: Phrase) -> bool:
    return len(part) < len(whole) and any(whole[at : at + len(part)] == part for at in range(len(whole)))
