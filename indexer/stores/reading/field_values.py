"""The values of a field: the most frequent, the range, how many are in each part of it, and the dates of documents."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged, LikewiseError, Message
from indexer.filters.dates import day_of, read_date
from indexer.filters.tree import COLUMNS, Scalar, Where
from indexer.stores.port import MAX_VALUE_CHARACTERS, FieldValues, Ids
from indexer.stores.reading.document_rows import WRONG_TYPES
from indexer.stores.reading.view import View

P = ParamSpec("P")
R = TypeVar("R")

_VALUES = "FROM {tables}.field_value WHERE field_id = %s AND {number} IS NOT NULL"


def _sound(read: Callable[Concatenate[FieldReader, str, P], R]) -> Callable[Concatenate[FieldReader, str, P], R]:
    """Return a method that raises IndexDamaged for a value that is not of the type of its field."""

    @wraps(read)
    def checked(self: FieldReader, field: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return read(self, field, *args, **kwargs)
        except LikewiseError:
            raise
        except (OverflowError, *WRONG_TYPES) as error:
            problem = f"a stored value of the field {field} is damaged: repair the index"
            raise IndexDamaged(Message(problem, " (likewise check --repair)")) from error

    return checked


class FieldReader:
    """The part of a snapshot that reads the values of fields."""

    _view: View

    @_sound
    def values(self, field: str, limit: int, where: Where | None = None) -> FieldValues:
        """Return the values of a field and the `limit` most frequent of them. An unknown field has no values.

        Args:
            field: a metadata field as filters write it, or one of `COLUMNS`.
            where: count only the documents that this filter leaves. `numbers` and `days` are of all documents.
        """
        among, chosen = self._among(where)
        ids = dict(self._view.rows("SELECT type, id FROM {tables}.field WHERE name = %s", field))
        days = None
        ids.pop("day", None)
        if (date_field := ids.pop("date", None)) is not None:
            first, last = self._extremes(date_field)
            days = None if first is None else (day_of(int(first)), day_of(int(last)))
        if field in COLUMNS:
            used = f"FROM {{tables}}.document WHERE {field} <> ''{among('id')}"  # null is not different from anything
            ((documents,),) = self._view.rows(f"SELECT count(*) {used}", *chosen)
            counts = self._view.rows(
                f"SELECT {field}, count(*) AS n {used} AND length({field}) <= %s GROUP BY {field}"
                f" ORDER BY n DESC, {field} LIMIT %s",
                *(*chosen, MAX_VALUE_CHARACTERS, limit),
            )
            return FieldValues(documents, tuple(counts), days=days)
        frequent: list[tuple[Scalar, int]] = []
        numbers = None
        for kind in sorted(ids):
            column, short = ("{text}", " AND length({text}) <= %s") if kind == "text" else ("{number}", "")
            counts = self._view.rows(
                f"SELECT {column}, count(*) AS n FROM {{tables}}.field_value WHERE field_id = %s"
                f" AND {column} IS NOT NULL{short}{among('document_id')}"
                f" GROUP BY {column} ORDER BY n DESC, {column} LIMIT %s",
                *(ids[kind], *([MAX_VALUE_CHARACTERS] if short else ()), *chosen, limit),
            )
            frequent += [(bool(value) if kind == "boolean" else _plain(value), count) for value, count in counts]
            if kind == "number":
                smallest, largest = self._extremes(ids[kind])
                numbers = None if smallest is None else (_plain(smallest), _plain(largest))
        frequent.sort(key=lambda pair: -pair[1])  # stable: equal numbers stay in the order of type and value
        distinct = "SELECT count(DISTINCT document_id) FROM {tables}.field_value WHERE field_id = SOME(%s)"
        ((documents,),) = self._view.rows(distinct + among("document_id"), list(ids.values()), *chosen)
        return FieldValues(documents, tuple(frequent[:limit]), numbers, days)

    @_sound
    def histogram(
        self, field: str, kind: Literal["number", "date"], bins: int, where: Where | None = None
    ) -> list[int]:
        """Return how many values are in each of equally wide parts of the range of all numbers, or dates, of a field.

        Args:
            where: count only the documents that this filter leaves; the range is that of all documents.

        Returns:
            One number per part (bins,), the lowest values first; empty if there are not two different values.
        """
        found = self._view.rows("SELECT id FROM {tables}.field WHERE name = %s AND type = %s", field, kind)
        low, high = (float(end or 0) for end in self._extremes(found[0][0])) if found else (0.0, 0.0)
        width = high - low
        parts_per_unit = bins / width if 0 < width < math.inf else math.inf
        if not math.isfinite(parts_per_unit):
            return []
        among, chosen = self._among(where)
        # Of the float of each value, because differences of 64-bit integers may have more bits.
        part = "CAST({floor}((CAST({number} AS DOUBLE PRECISION) - %s) * %s) AS INTEGER)"
        counts = [0] * bins
        for number, count in self._view.rows(
            f"SELECT {part}, count(*) {_VALUES}{among('document_id')} GROUP BY 1",
            *(low, parts_per_unit, found[0][0], *chosen),
        ):
            counts[min(number, bins - 1)] += count
        return counts

    @_sound
    def dates(self, field: str, where: Where | None = None) -> tuple[Ids, NDArray[np.int64]] | None:
        """Return the documents that a filter leaves and that have a date in a field.

        Args:
            field: a metadata field as filters write it, or `modified`. In a field without dates, a whole number of four
                digits is a year.

        Returns:
            Their ids in ascending order (n,), and the latest date of each in microseconds since 1970 (n,). None if the
            field holds numbers without dates, and most of all documents' numbers are not years.
        """
        select = (
            "SELECT v.document_id, max(v.{number}) FROM {tables}.field f JOIN {tables}.field_value v"
            " ON v.field_id = f.id WHERE f.name = %s AND f.type = %s GROUP BY v.document_id ORDER BY v.document_id"
        )
        rows = self._view.rows(select, field, "date")
        if not rows:
            numbers = self._view.rows(select, field, "number")
            rows = [(document, year.start) for document, number in numbers if (year := read_date(f"{number:g}"))]
            if len(rows) * 2 < len(numbers):
                return None
        documents = np.array([document for document, _ in rows], np.int64)
        dates = np.array([int(date) for _, date in rows], np.int64)
        if where is None:
            return documents, dates
        chosen = np.isin(documents, self._view.select(where).ids(), assume_unique=True)
        return documents[chosen], dates[chosen]

    def _among(self, where: Where | None) -> tuple[Callable[[str], str], list[list[int]]]:
        """Return a function that makes a condition on the column of a document's id, and the condition's parameter."""
        if where is None:
            return lambda column: "", []
        return lambda column: f" AND {column} = SOME(%s)", [self._view.select(where).ids().tolist()]

    def _extremes(self, field: int) -> tuple[Any, Any]:
        """Return the smallest and the largest value of a field of one type. Each is one look-up in an index."""
        each = (f"(SELECT {end}({{number}}) {_VALUES})" for end in ("min", "max"))
        ((smallest, largest),) = self._view.rows(f"SELECT {', '.join(each)}", field, field)
        return smallest, largest


def _plain(value: Any) -> Any:
    """Return a stored value; of a decimal number the int or the float, and an int for a whole one of up to 64 bits."""
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == value.to_integral_value() and -(2**63) <= value < 2**63 else float(value)
