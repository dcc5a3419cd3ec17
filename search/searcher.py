"""Questions to ranked hits over one index. Embedding is the encoder's work, ranking the store's; here they meet."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from indexer.calibration import Calibration, stored
from indexer.encoders import Encoder, Recipe, query_encoder
from indexer.errors import BadInput, UnknownUri
from indexer.prepared import broken_at
from indexer.records import Vector
from indexer.stores.local import LocalStore
from indexer.stores.vectors import unit_rows
from indexer.where import And, Compare, Not, Where, parse
from search.hits import Hit, Hits
from search.rerank import DEPTH, Scorer
from search.rerank import rerank as reranked

Mode = Literal["dense", "words", "hybrid"]


class Searcher:
    """Searches an index. Share one among threads; it sees new commits, and a replaced folder, by itself."""

    def __init__(self, path: str | PathLike[str], encoder: Encoder | None = None) -> None:
        """Open an index for searching. The model is loaded with the first question.

        Args:
            encoder: needed only for an index that was made with an encoder of your own.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: there is no index that can be read.
            RecipeMismatch: `encoder` is not the one the index was made with.
        """
        self.store = LocalStore(Path(path))
        self._given = encoder
        self._check_given()

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def search(
        self,
        query: str,
        k: int = 10,
        where: str | None = None,
        mode: Mode = "dense",
        passages: bool = False,
        min_score: float | None = None,
        exact: bool = False,
        min_percentile: float | None = None,
        rerank: str | Scorer | None = None,
        rerank_depth: int = DEPTH,
    ) -> Hits:
        """The k best documents for a question, each with its best passage.

        Args:
            where: a filter such as 'year >= 2020 and lang in ("en", "de")'.
            mode: "dense" ranks by the cosine of question and passage.
            passages: rank passages, of one document perhaps several.
            min_score: leave out hits below it, after the k best were found.
            exact: brute force, even where an approximate index would answer.
            min_percentile: leave out hits of a lower percentile; see `Hit.percentile`.
            rerank: a cross-encoder's name or folder, or any callable `(query, texts) -> scores`, which puts the best
                `rerank_depth` hits in a new order.

        Raises:
            BadInput: an empty question, k below 1, or a mode that the index does not offer.
            FilterError: a filter that does not parse or does not fit the index's fields.
            ModelError: the reranker cannot be loaded.

        Warns:
            UserWarning: the question is longer than the model reads, and was cut.
        """
        _check(k, mode)
        condition = parse(where) if where is not None else None
        (vector,) = self._encode([query])
        hits = self._ranked(vector, k if rerank is None else max(k, rerank_depth), condition, passages, exact, query)
        if rerank is not None:
            hits = reranked(hits, _scorer(rerank), k)
        return self._cut(hits, min_score, min_percentile)

    def search_many(
        self, queries: Sequence[str], k: int = 100, mode: Mode = "dense", where: str | None = None
    ) -> list[Hits]:
        """As `search` for each question; the questions go through the encoder together."""
        _check(k, mode)
        condition = parse(where) if where is not None else None
        if not queries:
            return []
        vectors = self._encode(queries)
        return [
            self._ranked(vector, k, condition, False, False, query)
            for query, vector in zip(queries, vectors, strict=True)
        ]

    def search_vector(
        self, vector: NDArray[np.floating] | Sequence[float], k: int = 10, where: str | None = None
    ) -> Hits:
        """The k best documents for a vector of the index's dimensions, of any length but zero."""
        _check(k, "dense")
        dimensions = int(self.store.settings()["dimensions"])
        (row,) = unit_rows(np.asarray(vector, np.float32).reshape(1, -1), dimensions, ["search_vector"])
        return self._ranked(row, k, parse(where) if where is not None else None, False, False, "")

    @property
    def calibration(self) -> Calibration | None:
        """What cosines mean in this index; None where that was not measured."""
        return stored(self.store.settings())

    def similar(self, uri: str, k: int = 10, where: str | None = None) -> Hits:
        """The k documents nearest to one of the index, by the mean of its passages' vectors; itself left out.

        Raises:
            UnknownUri: no document has this uri.
        """
        _check(k, "dense")
        rows = self.store.vectors_of(uri) if broken_at(uri) is None else None
        if rows is None:
            raise UnknownUri(f"{self.store.folder}: has no document {uri!r}; likewise list shows what there is")
        (mean,) = unit_rows(rows.mean(axis=0, keepdims=True), rows.shape[1], [uri])
        others: Where = Not(Compare("uri", "=", uri))
        condition = others if where is None else And((parse(where), others))
        return self._ranked(mean, k, condition, False, False, "")

    def _ranked(
        self,
        vector: Vector,
        k: int,
        where: Where | None,
        passages: bool,
        exact: bool,
        query: str,
    ) -> Hits:
        with self.store.reading():
            ranking = self.store.dense(vector, k, where, "passage" if passages else "document", exact)
            found = self.store.passages(ranking.passages.tolist())
            known = self.calibration
        scores = ranking.scores.tolist()
        hits = tuple(
            Hit.of(passage, score, known.percentile(score) if known else None)
            for passage, score in zip(found, scores, strict=True)
        )
        answered = None if known is None or not query else bool(scores) and scores[0] >= known.threshold
        return Hits(hits, ranking.matched, ranking.exact, query, answered=answered)

    def _cut(self, hits: Hits, min_score: float | None, min_percentile: float | None) -> Hits:
        if min_percentile is not None and any(hit.percentile is None for hit in hits):
            raise BadInput(
                f"{self.store.folder}: has no percentiles: they are measured when likewise index adds the first "
                "50 passages; use min_score"
            )
        kept = tuple(
            hit
            for hit in hits
            if (min_score is None or hit.score >= min_score)
            and (min_percentile is None or (hit.percentile is not None and hit.percentile >= min_percentile))
        )
        return replace(hits, hits=kept)

    def _encode(self, queries: Sequence[str]) -> Vector:
        encoder = self._encoder()
        for query in queries:
            if (broken := broken_at(query)) is not None:
                raise BadInput(f"the question is no valid Unicode at character {broken}")
        for query, tokens in zip(queries, encoder.offsets(list(queries)), strict=True):
            if not query.strip() or not len(tokens):
                raise BadInput("the question is empty: ask with at least one word")
            if (over := len(tokens) + encoder.overhead("query") - encoder.max_tokens) > 0:
                warnings.warn(
                    f"the question has {len(tokens)} tokens, {over} more than the model reads: "
                    f"its end, from {query[tokens[-over][0] :][:40]!r} on, was left out",
                    stacklevel=3,
                )
        return encoder.encode(list(queries), role="query", truncate=True)

    def _encoder(self) -> Encoder:
        """The encoder of the index as it is now: a replaced folder may have another recipe."""
        if self._given is not None:
            return self._given
        recipe = self.store.settings()["recipe"]
        if not recipe:
            raise BadInput(f"{self.store.folder}: holds your own vectors and has no model: use search_vector")
        return query_encoder(Recipe.from_json(recipe), self.store.folder / "encoder", self.store.post_parameters)

    def _check_given(self) -> None:
        if self._given is not None:
            from indexer.index import Index

            Index.open(self.store.folder, self._given).close()


def _scorer(rerank: str | Scorer) -> Scorer:
    if not isinstance(rerank, str):
        return rerank
    from indexer.encoders import cross_encoder

    return cross_encoder(rerank)


def _check(k: int, mode: str) -> None:
    if k < 1:
        raise BadInput(f"k is {k}: ask for at least 1 hit")
    if mode != "dense":
        raise BadInput(f"mode {mode!r} is not offered: this version ranks by meaning alone, use dense")
