"""`Asker`: the ways to ask that `Searcher` and `likewise.client.Client` share, and the checks of their arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput, refuse_pickle
from indexer.filters.mapping import Filter, filter_tree
from search.hits.hits import Hits
from search.query.query import RERANK_DEPTH, Mode, Query

if TYPE_CHECKING:
    from indexer.encoders.torch.cross_encoder import Scorer


class Asker(ABC):
    """Answers questions; a context manager that closes itself."""

    @abstractmethod
    def answer(self, query: Query) -> Hits:
        """Return the hits of a question. `hits.notes` says what could not be done as asked.

        Raises:
            NoWords: in words mode, the question has no word to search by.
            FilterError: the filter does not fit the index's fields.
            ModelError: the reranker cannot be loaded.
        """

    @abstractmethod
    def _answer_many(self, questions: Sequence[Query]) -> list[Hits]:
        """Return the hits of questions that differ in text, vector and filter alone."""

    @abstractmethod
    def close(self) -> None:
        """Release connections and memory. Later calls are refused."""

    __reduce_ex__ = refuse_pickle

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
        *,
        where: Filter | None = None,
        mode: Mode = "dense",
        passages: bool = False,
        min_score: float | None = None,
        exact: bool = False,
        rerank: str | Scorer | None = None,
        rerank_depth: int = RERANK_DEPTH,
        explain: bool = False,
        vector: NDArray[np.floating] | Sequence[float] | None = None,
        like: Sequence[str] = (),
        unlike: Sequence[str] = (),
        fold: bool = False,
        newer: str | None = None,
        literal: bool = True,
    ) -> Hits:
        """Return the k best documents for a question, each with its best passage.

        Args are the attributes of `Query`; this is `answer(Query(...))`.

        Raises:
            BadInput: an empty question, k below 1, or in words mode a question of stop words alone.
            FilterError: a filter that does not parse or does not fit the index's fields.
            ModelError: the reranker cannot be loaded.
        """
        # All options in the order of the members of `Query`.
        ranking = k, where, mode, passages, min_score, exact, rerank, rerank_depth, explain, vector
        return self.answer(Query(query, *ranking, like, unlike, fold, newer, literal))

    def search_vector(
        self,
        vector: NDArray[np.floating] | Sequence[float],
        k: int = 10,
        *,
        where: Filter | None = None,
        passages: bool = False,
        min_score: float | None = None,
        exact: bool = False,
    ) -> Hits:
        """Return the k best documents for a vector of the index's dimensions, of any length but zero."""
        return self.answer(Query("", k, where, "dense", passages, min_score, exact, vector=vector))

    def search_many(
        self,
        queries: Iterable[str],
        k: int = 100,
        *,
        where: Filter | Sequence[Filter | None] | None = None,
        mode: Mode = "dense",
        passages: bool = False,
        min_score: float | None = None,
        exact: bool = False,
        vectors: NDArray[np.floating] | Sequence[Sequence[float]] | None = None,
    ) -> list[Hits]:
        """Answer each question as `search` does; the questions go through the encoder together.

        In words mode a question without a word to search by has no hits, and `hits.notes` says so.

        Args:
            where: one filter, or a list of one per question.
            vectors: the vectors of the questions (questions, dimensions), instead of embedding them.
        """
        questions = read_queries(queries, k, where, mode, passages, min_score, exact, vectors)
        return self._answer_many(questions) if questions else []


def as_list(values: Iterable[Any], noun: str, method: str) -> list[Any]:
    """Return the values as a list.

    Raises:
        BadInput: they are one string, which `method` takes, or not iterable.
    """
    if isinstance(values, str):
        raise BadInput(f"one string was given in place of a list of {noun}: put it in brackets, or use {method}")
    if not isinstance(values, Iterable):
        raise BadInput(f"the {noun} are not a list but {type(values).__name__}")
    return list(values)


def read_queries(
    queries: Iterable[str],
    k: int,
    where: Filter | Sequence[Filter | None] | None,
    mode: Mode,
    passages: bool,
    min_score: float | None,
    exact: bool,
    vectors: NDArray[np.floating] | Sequence[Sequence[float]] | None,
) -> list[Query]:
    """Return the arguments of `search_many` as one `Query` per question.

    Raises:
        BadInput, FilterError: one of them is wrong, even if there is no question.
    """
    texts = as_list(queries, "questions", "search")
    filters = _filters(where, len(texts))
    if vectors is not None and (shape := _shape(vectors))[:1] != (len(texts),):
        raise BadInput(f"vectors have shape {shape}: give one row per question, {len(texts)} in all")
    rows = [None] * len(texts) if vectors is None else vectors
    Query("-", k, None, mode, passages, min_score, exact)
    return [
        Query(text, k, condition, mode, passages, min_score, exact, vector=row)
        for text, condition, row in zip(texts, filters, rows, strict=True)
    ]


def _filters(where: Filter | Sequence[Filter | None] | None, questions: int) -> list[Filter | None]:
    """Return one filter per question."""
    if isinstance(where, str) or not isinstance(where, Sequence | np.ndarray):
        return [filter_tree(where)] * questions  # parsed once for all questions
    if len(where) != questions:
        raise BadInput(f"{len(where)} filters were given for {questions} questions: give one, or one per question")
    return list(where)


def _shape(vectors: NDArray[np.floating] | Sequence[Sequence[float]]) -> tuple[int, ...]:
    try:
        return np.shape(vectors)
    except ValueError as error:  # rows of different lengths
        raise BadInput(f"vectors are not an array of numbers: {error}") from error


def hits_above(hits: Hits, min_score: float | None) -> Hits:
    """Return the hits that reach the lowest score of a question."""
    if min_score is None:
        return hits
    return replace(hits, hits=tuple(hit for hit in hits if hit.score >= min_score))
