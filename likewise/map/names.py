"""Names for the regions of a map: phrases that its documents are about, or the title of a central document.

A document is about a phrase if its title has it, or if its text repeats it. A text repeats what it is about, in any
language, but not its verbs and adverbs (Church and Gale, Poisson mixtures, 1995). The score of a phrase is a product of
four: the share of the region's documents that are about it, the logarithm of how much more frequent these are there
than elsewhere, its length, and how similar all documents about it are. Documents with a word that any text may have are
not similar. Names of people, folders and files are left out.

Documents that a phrase names count less for the next one, so that the phrases together name most documents of a region
of several subjects. If they name too few, the name is "around: TITLE", with the title of a central document, or with
two titles. The folder of most documents of a region follows its name: "mostly notes/".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.records import Document, Vector
from indexer.stores.words.analysis import Analysis
from likewise.map.phrases import TITLE_CHARACTERS, Phrase, read_phrases, shortened

_TERMS = 3
"""Maximum phrases of a name."""
_READ_DOCUMENTS = 10_000
"""Maximum documents that are read, evenly spread."""
_MIN_DOCUMENTS = 3
"""Minimum documents that a phrase of a name adds to those with the phrases before it."""
_MIN_SHARE = 0.1
"""Minimum share of a region's documents that a phrase adds."""
_MIN_NAMED = 0.5
"""Minimum share of a region's documents that the phrases of its name name together."""
_ENOUGH = 0.7
"""Share of a region's documents that phrases name, from which a name has no further one."""
_MIN_INSIDE = 0.5
"""Minimum share of the documents with a phrase that are in the region."""
_MOSTLY = 2 / 3
"""Minimum share of a region's documents in a folder or file that is named after its name."""
_MIN_LIFT = 2.0
"""Minimum ratio of the share of a region's documents with a phrase to the share elsewhere."""
_RARE = 0.003
"""Share of documents that is added to those elsewhere, because the lift of rare phrases is chance."""
_MIN_OF_BEST = 0.3
"""Minimum score of a further phrase, as a share of the first one's."""
_WHOLE = 0.75
"""Minimum documents and score of a longer phrase that replaces a phrase, as a share of those of the phrase."""
_LENGTH_WEIGHTS = (1.0, 1.9, 2.3)
"""Weights of phrases of one, two, and three or more words: "stem cells" says more than "cells"."""
_AGAIN = 0.4
"""Weight of a document that another phrase names already."""
_CANDIDATES = 200
_SIMILAR = 0.05
"""Mean cosine of documents with a phrase that counts half."""
_ALIKE = 0.4
"""Mean cosine of a region's documents from which the title of one says what all are about."""
_PERSON = 3
"""A word is taken for a person's if at least one in this many of its documents has it in a name before an address."""
_MIN_PART = 3
"""Minimum letters of a stem that another stem may not contain."""


class Names:
    """Names regions of one collection by the phrases of its documents. No two names are equal."""

    def __init__(self, documents: Sequence[Document], vectors: Vector, analysis: Analysis) -> None:
        from scipy.sparse import csr_array

        self._read = slice(None, None, -(-len(documents) // _READ_DOCUMENTS))
        self._documents, self._vectors = documents[self._read], (vectors - vectors.mean(axis=0))[self._read]
        self._phrases = read_phrases(self._documents, analysis, {each.path or "" for each in documents})
        self._in_folder = Counter(chain.from_iterable(self._phrases.folders))
        self._taken = set[str]()
        phrases_of = self._phrases.of_documents
        mentions = Counter(chain.from_iterable(phrases_of))
        people = {word for word, count in self._phrases.people.items() if mentions[word,] <= _PERSON * count}
        about = Counter(term for phrases in phrases_of for term, count in phrases.items() if count > 1)
        self._terms = sorted(
            term
            for term, count in about.items()
            if count >= _MIN_DOCUMENTS and not people.issuperset(term) and term not in self._phrases.of_paths
        )
        position = {term: at for at, term in enumerate(self._terms)}
        columns, counts, ends = list[int](), list[int](), [0]
        for phrases in phrases_of:
            known = sorted(phrases.keys() & position.keys())
            columns += [position[term] for term in known]
            counts += [phrases[term] for term in known]
            ends.append(len(columns))
        shape, cells, stops = (len(ends) - 1, len(self._terms)), np.array(columns, np.int32), np.array(ends)
        self._has = csr_array((np.ones(len(cells), np.float32), cells, stops), shape)
        self._about = csr_array(((np.array(counts) > 1.0).astype(np.float32), cells, stops), shape)
        # In a script without spaces, a stem is one character, and two of them count as one word.
        words = [len(term) if len(term[0]) > 1 else len(term) / 2 for term in self._terms]
        self._quality = np.interp(words, (1, 2, 3), _LENGTH_WEIGHTS)

    def of_regions(self, regions: NDArray[np.intp], count: int) -> Iterator[tuple[str, ...]]:
        """Yield the name of each region: phrases, or "around: TITLE", and perhaps where most of its documents are.

        Args:
            regions: the region of each document.
            count: number of regions.
        """
        read = regions[self._read]
        everywhere = self._about.sum(axis=0)
        for region in range(count):
            rows = np.flatnonzero(read == region)
            about = self._about[rows].sum(axis=0)
            share = about / max(1, len(rows))
            lift = share / ((everywhere - about) / max(1, len(read) - len(rows)) + _RARE)
            scores = np.log(np.maximum(lift, 1)) * self._quality
            is_elsewhere = self._has[rows].sum(axis=0) < _MIN_INSIDE * self._has.sum(axis=0)
            scores[is_elsewhere | (share < _MIN_SHARE) | (lift < _MIN_LIFT)] = 0
            best = np.argsort(-scores * share, kind="stable")[:_CANDIDATES]
            best = best[scores[best] > 0]
            cosines = self._cosines(self._about[:, best].T)
            scores = scores[best] * cosines / (cosines + _SIMILAR)
            chosen = self._chosen(best, scores, self._about[rows][:, best].toarray() > 0)
            names = chain(chosen, self._central(rows))
            name = next((name for name in names if " · ".join(name).casefold() not in self._taken), ())
            self._taken.add(" · ".join(name).casefold())
            yield (*name, *self._mostly(rows))

    def _cosines(self, has: Any) -> NDArray[np.floating]:
        """Return the mean cosine of two of the documents in each row of a matrix (groups, documents read)."""
        documents, length = has.sum(axis=1), has @ (self._vectors**2).sum(axis=1)
        pairs = ((has @ self._vectors) ** 2).sum(axis=1) - length
        return np.asarray(np.maximum(pairs / np.maximum(documents - 1, 1) / np.maximum(length, 1e-9), 0))

    def _chosen(
        self, best: NDArray[np.intp], scores: NDArray[np.floating], has: NDArray[np.bool_]
    ) -> Iterator[tuple[str, ...]]:
        """Yield the phrases of a name, each for documents that those before it do not name, and each as long as most
        documents have it. Yield nothing if they name too few documents."""
        terms = [self._terms[term] for term in best]
        named = np.zeros((len(has), 1), bool)
        names, least, documents = list[int](), 0.0, has.sum(axis=0)
        while terms and len(names) < _TERMS and named.sum() < _ENOUGH * len(has):
            gains = scores * (np.where(named, _AGAIN, 1) * has).mean(axis=0)
            gains[(~named & has).sum(axis=0) < max(_MIN_DOCUMENTS, _MIN_SHARE * len(has))] = 0
            gains[[any(_is_alike(term, terms[name]) for name in names) for term in terms]] = 0
            term = int(gains.argmax())
            if gains[term] <= least:
                break
            least = least or _MIN_OF_BEST * gains[term]
            longer = (at for at, phrase in enumerate(terms) if _is_within(terms[term], phrase))
            whole = (at for at in longer if all(of[at] >= _WHOLE * of[term] for of in (documents, scores)))
            names.append(max(whole, key=lambda at: (len(terms[at]), documents[at]), default=term))
            named |= has[:, term, None]
        if names and named.sum() >= _MIN_NAMED * len(has):
            yield tuple(self._phrases.written(terms[name]) for name in names)

    def _central(self, rows: NDArray[np.intp]) -> Iterator[tuple[str, ...]]:
        """Yield names of titles, those nearest to the middle of a region first. If its documents are little alike, they
        are divided in two along their first principal component, and a name has a title of each part."""
        parts, in_region = [rows], np.isin(np.arange(len(self._vectors)), rows)[None].astype(np.float32)
        if len(rows) > 1 and self._cosines(in_region)[0] < _ALIKE:
            centred = self._vectors[rows] - self._vectors[rows].mean(axis=0)
            side = centred @ np.linalg.svd(centred, full_matrices=False)[2][0] > 0
            parts = sorted(filter(len, (rows[side], rows[~side])), key=lambda part: (-len(part), part[0]))
        for titles in zip(*map(self._titles, parts), strict=False):
            first, *second = dict.fromkeys(shortened(title, TITLE_CHARACTERS // len(titles)) for title in titles)
            yield (f"around: {first}", *second)

    def _titles(self, rows: NDArray[np.intp]) -> Iterator[str]:
        """Yield the titles and then the uris of documents, the nearest to their middle first."""
        vectors = self._vectors[rows]
        nearest = rows[np.argsort(-(vectors @ vectors.sum(axis=0)), kind="stable")]
        yield from filter(None, (self._phrases.titles[row] for row in nearest))
        yield from (self._documents[row].uri for row in nearest)

    def _mostly(self, rows: NDArray[np.intp]) -> tuple[str, ...]:
        """Return the innermost folder that most documents of a region are in, and few elsewhere."""
        inside = Counter(chain.from_iterable(self._phrases.folders[row] for row in rows))
        others = max(1, len(self._phrases.folders) - len(rows))
        mostly = (
            f"mostly {folder.lstrip('/')}"
            for folder, count in sorted(inside.items())  # the innermost has the most slashes, and is the first
            if count >= len(rows) * max(_MOSTLY, _MIN_LIFT * (self._in_folder[folder] - count) / others)
        )
        return tuple(islice(mostly, 1))


def _is_alike(one: Phrase, other: Phrase) -> bool:
    """Return whether a stem of one phrase is a part of a stem of the other: such phrases say the same twice."""
    pairs = (sorted((word, its), key=len) for word in one for its in other)
    return any(short == long or (len(short) >= _MIN_PART and short in long) for short, long in pairs)


def _is_within(part: Phrase, whole: Phrase) -> bool:
    return len(part) < len(whole) and any(whole[at : at + len(part)] == part for at in range(len(whole)))
