"""Newer first: each score is multiplied with a weight that halves at equal steps of the document's age."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self, get_args

import numpy as np

from indexer.errors import BadInput, FilterError, UnknownField, count_of
from indexer.filters.dates import Unit, before_now
from indexer.filters.mapping import filter_tree
from indexer.filters.tree import COLUMNS, Exists, Where, one_line
from indexer.stores.fields.field_types import FieldTypes, check_filter
from indexer.stores.port import Ids
from indexer.stores.reading.snapshot import Snapshot
from search.fusion import Scores
from search.modes import Ranked

MAX_DEPTH = 10_000
"""Minimum units among which the newest are looked for before a ranking gives up being exact. With a half-life much
shorter than the ages of the documents, all of them would be ranked."""

RankAt = Callable[[int], Ranked]
"""Returns the n best units of a question, or all if there are fewer. More than n may be returned."""

_FORM = re.compile(rf"(\d{{1,5}})({'|'.join(get_args(Unit))})(?::(.+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Newer:
    """A half-life such as "90d", or "90d:created" for the dates of a field.

    Attributes:
        field: the field as filters write it; `modified` is the time of the document's file.
    """

    count: int
    unit: Unit
    field: str

    @classmethod
    def read(cls, text: object) -> Self:
        """Return the half-life that a text is.

        Raises:
            BadInput: the text is not a half-life.
            FilterError: this cannot be the name of a field.
        """
        match = _FORM.fullmatch(text) if isinstance(text, str) else None
        if match is None or not int(match[1]):
            raise BadInput(f"newer is {text!r:.80}: give a half-life such as 90d, 12h, 6mo or 1y, or 90d:FIELD")
        field = filter_tree({match[3] or "modified": {"exists": True}})
        assert isinstance(field, Exists)
        newer = cls(int(match[1]), match[2], field.field)  # type: ignore[arg-type]  # one of the units
        try:
            newer.now_and_half_life()
        except ValueError:
            raise BadInput(f"newer is {text!r}: the year 1 is nearer: give a shorter half-life") from None
        return newer

    def now_and_half_life(self) -> tuple[int, int]:
        """Return the time since 1970 and the half-life that begins now, both in microseconds."""
        now = before_now(0, "h").start
        return now, now - before_now(self.count, self.unit).start

    def check(self, fields: FieldTypes, *, unknown_is_error: bool) -> None:
        """Check the field of the dates against the fields of an index, or of several indexes together.

        Raises:
            UnknownField: no document has the field, and this is an error.
            FilterError: the field holds no dates.
        """
        types = (fields or {}).get(self.field, ())
        if self.field != "modified" and fields is not None and (types or unknown_is_error):
            try:
                check_filter(Exists(self.field), fields)
            except UnknownField as error:
                raise UnknownField(f"newer: {str(error).removeprefix('filter: ')}", error.field) from None
            if self.field in COLUMNS or {"date", "number"}.isdisjoint(types):
                dated = ["modified", *sorted(name for name, kinds in fields.items() if "date" in kinds)]
                advice = f"name a field of dates: {', '.join(dict.fromkeys(dated[:10]))}"
                raise FilterError(f"newer: field {one_line(self.field, 80)} holds no dates: {advice}")

    def weigh(self, snapshot: Snapshot, where: Where | None) -> Weights:
        """Return the weights of the documents that a filter leaves."""
        documents, dates = snapshot.dates(self.field, where)
        now, half_life = self.now_and_half_life()
        weights = np.exp2(-np.maximum(now - dates, 0) / half_life)
        undated = (snapshot.documents if where is None else snapshot.count(where)) - len(documents)
        return Weights(documents, weights, median_of([weights]), undated, self.field)


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of documents.

    Attributes:
        documents: ids of those that have a date, ascending (n,).
        weights: the weight of each, 0 to 1 (n,).
        undated_weight: the weight of all others: the median of all weights; None if no document has a date.
        undated: how many others there are.
        field: the field of the dates.
    """

    documents: Ids
    weights: Scores
    undated_weight: float | None
    undated: int
    field: str

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.undated:
            return ()
        field = one_line(self.field, 80)
        if self.undated_weight is None:
            return (f"newer: no document has a date in {field}, so their ages change nothing",)
        without = f"{count_of(self.undated, 'document')} without a date in {field}"
        return (f"newer: {without}: weighted by {self.undated_weight:.2g}, the median of the others",)

    @property
    def _weight_of_others(self) -> float:
        return 1.0 if self.undated_weight is None else self.undated_weight

    def of(self, documents: Ids) -> Scores:
        """Return the weight of each document (n,)."""
        if not len(self.documents):
            return np.full(len(documents), self._weight_of_others)
        places = np.minimum(np.searchsorted(self.documents, documents), len(self.documents) - 1)
        return np.where(self.documents[places] == documents, self.weights[places], self._weight_of_others)

    def newest_first(self, rank_at: RankAt, *, exact: bool) -> RankAt:
        """Return a ranking in which every score above 0 is multiplied with the weight of its document.

        It reads on until no unit that was left out could come earlier. Unless `exact`, it stops at MAX_DEPTH; the
        ranking is then not exact.
        """
        largest = max(self.weights.max(initial=0.0), self._weight_of_others if self.undated else 0.0)

        def ranked_at(depth: int) -> Ranked:
            fetched = depth
            while True:
                plain = rank_at(fetched)
                bound = plain.bound * largest if plain.bound > 0 else plain.bound
                weighted = _weighted(plain, self.of(plain.documents), bound)
                if not np.isfinite(bound) or (len(weighted.scores) >= depth and weighted.scores[depth - 1] > bound):
                    return weighted
                if fetched >= MAX_DEPTH and not exact:
                    return replace(weighted, exact=False)
                fetched *= 4

        return ranked_at


def median_of(weights: Sequence[Scores]) -> float | None:
    """Return the median of the weights of all dated documents, of one index or of several; None without any."""
    every = np.concatenate([*weights, np.empty(0)])
    return float(np.median(every)) if len(every) else None


def _weighted(ranked: Ranked, weights: Scores, bound: float) -> Ranked:
    factors = np.where(ranked.scores > 0, weights, 1.0)
    weighted = replace(ranked, scores=ranked.scores * factors, factors=factors, bound=bound)
    return weighted.take(np.lexsort((ranked.passages, -weighted.scores)))
