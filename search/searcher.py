"""Questions to ranked hits over one index. Embedding is the encoder's work, ranking the store's; here they meet."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from indexer.batches import broken_at
from indexer.calibration.probe import SAMPLE
from indexer.encoders import Encoder, Recipe, query_encoder
from indexer.encoders.torch.cross_encoder import Scorer
from indexer.errors import BadInput, NoWords, UnknownUri
from indexer.filters.parse import parse
from indexer.filters.tree import Where
from indexer.identity import require_recipe
from indexer.notes import note_as_warning
from indexer.records import Vector
from indexer.settings import Calibration, Settings
from indexer.stores.analysis import stored_analysis
from indexer.stores.open import open_store
from indexer.stores.port import Snapshot, Unit
from indexer.stores.vectors import unit_rows
from search import modes
from search.arguments import Mode, check_text, checked
from search.explain import all_words, with_sentences, with_words
from search.fusion import Background, lean
from search.hits import Hit, Hits
from search.modes import ScoredCandidates
from search.rerank import DEPTH
from search.rerank import rerank as reranked


class Searcher:
    """Searches an index. Share one among threads; it sees new commits, and a replaced folder, by itself."""

    def __init__(
        self, path: str | PathLike[str], encoder: Encoder | None = None, *, trust_remote_code: bool = False
    ) -> None:
        """Open an index for searching. The model is loaded with the first question.

        Args:
            encoder: needed only for an index that was made with an encoder of your own.
            trust_remote_code: run the Python that comes with the index's model.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: there is no index that can be read.
            RecipeMismatch: `encoder` is not the one the index was made with.
        """
        self.store = open_store(path)
        self._given, self._trust = encoder, trust_remote_code
        self._known_background: tuple[str, int, Background] | None = None
        self._fits: Recipe | None = None  # the index's recipe that the given encoder was found to have
        if encoder is not None:
            with self.store.snapshot() as snapshot:
                self._encoder(snapshot)

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
        explain: bool = False,
    ) -> Hits:
        """The k best documents for a question, each with its best passage.

        Args:
            where: a filter such as 'year >= 2020 and lang in ("en", "de")'.
            mode: "dense" ranks by the cosine of question and passage, "words" by BM25, "hybrid" by both (fusion.py).
            passages: rank passages, of one document perhaps several.
            min_score: leave out hits below it, after the k best were found.
            exact: brute force, even where an approximate index would answer.
            min_percentile: leave out hits of a lower percentile; see `Hit.percentile`.
            rerank: a cross-encoder's name or folder, or any callable `(query, texts) -> scores`, which puts the best
                `rerank_depth` hits in a new order.
            explain: find in each hit the sentence nearest to the question, for `Hit.why`.

        Raises:
            BadInput: an empty question, k below 1, or in words mode a question of stop words alone.
            FilterError: a filter that does not parse or does not fit the index's fields.
            ModelError: the reranker cannot be loaded.

        Warns:
            UserWarning: the question is longer than the model reads, and was cut; or has only stop words in hybrid
                mode, and was ranked by meaning alone.
        """
        k = checked(k, mode, rerank_depth, min_score, min_percentile)
        condition = parse(where) if where is not None else None
        depth = k if rerank is None else max(k, rerank_depth)
        with self.store.snapshot() as snapshot:  # question and answer see one index, whatever takes its place meanwhile
            vectors = self._vectors(snapshot, [query], mode)
            vector = vectors[0] if vectors is not None else None
            unit: Unit = "passage" if passages else "document"
            hits = self._ranked(snapshot, query, vector, depth, condition, mode, unit, exact)
            for note in snapshot.notes:
                note_as_warning(note)
            encoder = self._encoder(snapshot) if explain and snapshot.settings.recipe else None
            question = self._encode(snapshot, [query])[0] if encoder is not None and vector is None else vector
        if rerank is not None:
            hits = reranked(hits, _scorer(rerank), k)
        hits = self._cut(hits, min_score, min_percentile)
        if encoder is not None and question is not None:
            hits = replace(hits, hits=tuple(with_sentences(hits.hits, encoder, question)))
        return hits

    def search_many(
        self, queries: Iterable[str], k: int = 100, mode: Mode = "dense", where: str | None = None
    ) -> list[Hits]:
        """As `search` for each question; the questions go through the encoder together.

        In words mode a question without a word to search by has no hits, and a warning says so.
        """
        k = checked(k, mode)
        if isinstance(queries, str):
            raise BadInput("one string was given in place of a list of questions: put it in brackets, or use search")
        if not isinstance(queries, Iterable):
            raise BadInput(f"the questions are no list but {type(queries).__name__}")
        queries = list(queries)
        condition = parse(where) if where is not None else None
        if not queries:
            return []
        found = []
        with self.store.snapshot() as snapshot:
            vectors = self._vectors(snapshot, queries, mode)
            for at, query in enumerate(queries):
                vector = None if vectors is None else vectors[at]
                try:
                    found.append(self._ranked(snapshot, query, vector, k, condition, mode, "document", False))
                except NoWords as error:
                    warnings.warn(str(error), stacklevel=2)
                    found.append(Hits((), 0, True, query, mode))
            for note in snapshot.notes:
                note_as_warning(note)
        return found

    def search_vector(
        self, vector: NDArray[np.floating] | Sequence[float], k: int = 10, where: str | None = None
    ) -> Hits:
        """The k best documents for a vector of the index's dimensions, of any length but zero."""
        k = checked(k, "dense")
        with self.store.snapshot() as snapshot:
            (row,) = unit_rows(np.asarray(vector)[None], snapshot.settings.dimensions, ["search_vector"])
            condition = parse(where) if where is not None else None
            hits = self._ranked(snapshot, "", row, k, condition, "dense", "document", False)
            for note in snapshot.notes:
                note_as_warning(note)
            return hits

    def similar(self, uri: str, k: int = 10, where: str | None = None) -> Hits:
        """The k documents nearest to one of the index, by the mean of its passages' vectors; itself left out.

        Raises:
            UnknownUri: no document has this uri.
        """
        k = checked(k, "dense")
        with self.store.snapshot() as snapshot:
            rows = snapshot.vectors_of(uri) if isinstance(uri, str) and broken_at(uri) is None else None
            if rows is None:
                raise UnknownUri(f"{self.store.address}: has no document {uri!r}; likewise list shows what there is")
            (mean,) = unit_rows(rows.mean(axis=0, keepdims=True), rows.shape[1], [uri])
            condition = parse(where) if where is not None else None
            found = self._ranked(snapshot, "", mean, k + 1, condition, "dense", "document", False)
            for note in snapshot.notes:
                note_as_warning(note)
            itself = condition is None or snapshot.matches(uri, condition)
            return replace(
                found, hits=tuple(hit for hit in found if hit.uri != uri)[:k], matched=found.matched - itself
            )

    @property
    def calibration(self) -> Calibration | None:
        """What cosines mean in this index; None where that was not measured."""
        return self._settings().calibration

    def candidates(self, queries: Sequence[str]) -> tuple[list[ScoredCandidates], list[list[str]]]:
        """What hybrid mode chooses from for each question, with scores by meaning and by words; and the uris."""
        found, uris = [], []
        with self.store.snapshot() as snapshot:
            background = self._background(snapshot)
            for query, vector in zip(queries, self._encode(snapshot, queries), strict=True):
                one = modes.candidates(snapshot, background, query, vector, 10, None, "document")
                found.append(one)
                ids = one.candidates.passages.tolist()
                uris.append([passage.uri for passage in snapshot.passages_by_id(ids)])
            for note in snapshot.notes:
                note_as_warning(note)
        return found, uris

    @property
    def lean(self) -> float:
        """How far hybrid leans to words here: what judged questions said, or else pseudo-questions."""
        return _lean(self._settings())

    @property
    def unlearnt_lean(self) -> float:
        """What it is, or would be, by pseudo-questions alone."""
        return _unlearnt_lean(self._settings())

    def _settings(self) -> Settings:
        with self.store.snapshot() as snapshot:
            return snapshot.settings

    def _ranked(
        self,
        snapshot: Snapshot,
        query: str,
        vector: Vector | None,
        k: int,
        where: Where | None,
        mode: Mode,
        unit: Unit,
        exact: bool,
    ) -> Hits:
        if mode == "words":
            found = modes.by_words(snapshot, query, k, where, unit)
        elif mode == "dense":
            assert vector is not None
            found = modes.by_meaning(snapshot, vector, k, where, unit, exact)
        else:
            assert vector is not None
            both = modes.candidates(snapshot, self._background(snapshot), query, vector, k, where, unit, exact)
            if not both.candidates.terms:
                warnings.warn(
                    f"the question {query[:40]!r} has no word to search by: ranked by meaning alone", stacklevel=3
                )
            found = modes.by_both(both, _lean(snapshot.settings), k)
        passages = snapshot.passages_by_id(found.passages.tolist())
        known, analysis = snapshot.settings.calibration, stored_analysis(snapshot.settings.language)
        cosines = found.cosines or (None,) * len(passages)
        hits = [
            Hit.of(passage, score, cosine, known.percentile(cosine) if known and cosine is not None else None, why)
            for passage, score, cosine, why in zip(passages, found.scores, cosines, found.whys, strict=True)
        ]
        judged = known is not None and bool(query) and mode != "words"
        return Hits(
            tuple(with_words(hits, analysis, query) if query else hits),
            found.matched,
            found.exact,
            query,
            mode,
            found.nearest >= known.threshold or (mode == "hybrid" and all_words(hits, analysis, query))
            if judged and known
            else None,
        )

    def _background(self, snapshot: Snapshot) -> Background:
        """Of the index as it is now, or was a tenth of its passages ago."""
        history, passages, known = snapshot.history, snapshot.passages, self._known_background
        if known is None or known[0] != history or abs(passages - known[1]) > known[1] / 10:
            rows = snapshot.sample(SAMPLE).vectors
            if not len(rows):
                rows = np.zeros((1, snapshot.settings.dimensions), np.float32)
            self._known_background = known = (history, passages, Background.of(rows))
        return known[2]

    def _cut(self, hits: Hits, min_score: float | None, min_percentile: float | None) -> Hits:
        if min_percentile is not None and hits.mode == "words":
            raise BadInput(
                "hits by words alone have no percentiles, which are of cosines: use min_score, or another mode"
            )
        if min_percentile is not None and any(hit.percentile is None for hit in hits):
            raise BadInput(
                f"{self.store.address}: has no percentiles: they are measured when a model embeds the first "
                "50 passages; use min_score"
            )
        kept = tuple(
            hit
            for hit in hits
            if (min_score is None or hit.score >= min_score)
            and (min_percentile is None or (hit.percentile is not None and hit.percentile >= min_percentile))
        )
        return replace(hits, hits=kept)

    def _vectors(self, snapshot: Snapshot, queries: Sequence[str], mode: Mode) -> Vector | None:
        """Of the questions (queries, dimensions); words need none, and no model either."""
        if mode != "words":
            return self._encode(snapshot, queries)
        for query in queries:
            check_text(query)
        return None

    def _encode(self, snapshot: Snapshot, queries: Sequence[str]) -> Vector:
        encoder = self._encoder(snapshot)
        for query in queries:
            check_text(query)
        for query, tokens in zip(queries, encoder.offsets(list(queries)), strict=True):
            if not len(tokens):
                raise BadInput(f"the question {query!r} is empty: ask with at least one word")
            if (over := len(tokens) + encoder.overhead("query") - encoder.max_tokens) > 0:
                warnings.warn(
                    f"the question has {len(tokens)} tokens, {over} more than the model reads: "
                    f"its end, from {query[tokens[-over][0] :][:40]!r} on, was left out",
                    stacklevel=3,
                )
        return encoder.encode(list(queries), role="query", truncate=True)

    def _encoder(self, snapshot: Snapshot) -> Encoder:
        """The encoder of the index as it is now: a replaced folder may have another recipe."""
        recipe = snapshot.settings.recipe
        if self._given is not None:
            if recipe is not None and recipe != self._fits:
                require_recipe(self.store.address, recipe, self._given.recipe)
                self._fits = recipe
            return self._given
        if recipe is None:
            raise BadInput(
                f"{self.store.address}: holds your own vectors and has no model: ask in words mode, or by search_vector"
            )
        return query_encoder(
            recipe, self.store.artifacts(), snapshot.fitted_parameters, self._trust, note=note_as_warning
        )


def _lean(settings: Settings) -> float:
    return _unlearnt_lean(settings) if settings.words_bias is None else settings.words_bias


def _unlearnt_lean(settings: Settings) -> float:
    return lean(settings.probed) if settings.probed else 0.0


def _scorer(rerank: str | Scorer) -> Scorer:
    if not isinstance(rerank, str):
        return rerank
    from indexer.encoders import cross_encoder

    return cross_encoder(rerank)
