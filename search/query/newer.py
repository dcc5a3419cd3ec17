"""Newer first: each score is multiplied with a weight that halves at equal steps of the document's age."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput, FilterError, UnknownField, count_of
from indexer.filters.dates import Unit, before_now
from indexer.filters.mapping import filter_tree
from indexer.filters.tree import COLUMNS, Exists, Where, one_line
from indexer.stores.fields.field_types import FieldTypes, check_filter
from indexer.stores.port import Ids
from indexer.stores.reading.snapshot import Snapshot

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
                raise self._no_dates(fields)

    def _no_dates(self, fields: FieldTypes) -> FilterError:
        dated = ["modified", *sorted(name for name, kinds in (fields or {}).items() if "date" in kinds)]
        advice = f"name a field of dates: {', '.join(dict.fromkeys(dated[:10]))}"
        return FilterError(f"newer: field {one_line(self.field, 80)} holds no dates: {advice}")

    def weigh(self, snapshot: Snapshot, where: Where | None) -> Weights:
        """Return the weights of the documents that a filter leaves.

        Raises:
            FilterError: the field holds numbers, and most are not years.
        """
        if (dated := snapshot.dates(self.field, where)) is None:
            raise self._no_dates(snapshot.fields)
        documents, dates = dated
        now, half_life = self.now_and_half_life()
        weights = np.exp2(-np.maximum(now - dates, 0) / half_life)
        undated = (snapshot.documents if where is None else snapshot.count(where)) - len(documents)
        return Weights(documents, weights, median_of([weights]), undated, self.field)


class Weights(NamedTuple):
    """The weights of documents.

    Attributes:
        documents: ids of those that have a date, ascending (n,).
        weights: the weight of each, 0 to 1 (n,).
        undated_weight: the weight of all others: the median of all weights; None if no document has a date.
        undated: how many others there are.
        field: the field of the dates.
    """

    documents: Ids
    weights: NDArray[np.float64]
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

    def of(self, documents: Ids) -> NDArray[np.float64]:
        """Return the weight of each document (n,)."""
        if not len(self.documents):
            return np.full(len(documents), self._weight_of_others)
        places = np.minimum(np.searchsorted(self.documents, documents), len(self.documents) - 1)
        return np.where(self.documents[places] == documents, self.weights[places], self._weight_of_others)

    @property
    def largest(self) -> float:
        """The largest weight that any document has."""
        return max(float(self.weights.max(initial=0.0)), self._weight_of_others if self.undated else 0.0)


def median_of(weights: Sequence[NDArray[np.float64]]) -> float | None:
    """Return the median of the weights of all dated documents, of one index or of several; None without any."""
    every = np.concatenate([*weights, np.empty(0)])
    return float(np.median(every)) if len(every) else None
