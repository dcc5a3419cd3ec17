"""A question with all its options, validated when it is made."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput
from indexer.filters.mapping import Filter, filter_tree
from indexer.filters.tree import Where
from indexer.records import Vector, broken_at
from indexer.stores.port import Conditions, Unit
from indexer.stores.vectors import unit_rows
from search.query.conditions import read_conditions
from search.query.examples import read_uris
from search.query.newer import Newer

if TYPE_CHECKING:
    from indexer.encoders.torch.cross_encoder import Scorer
    from indexer.stores.reading.snapshot import Snapshot

Mode = Literal["dense", "words", "hybrid"]

RERANK_DEPTH = 50
"""Number of hits that a reranker scores; k if this is more."""

SENT_MEMBERS = (
    *("k", "passages", "min_score", "exact", "explain", "vector", "like", "unlike", "fold", "newer", "literal"),
)
"""Members of a question that a service is sent under their names. Text, filter and mode have other forms there, and the
client reranks."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question to an index.

    Attributes:
        text: the question; may be empty if a vector is given and the mode is "dense".
        k: how many hits to return.
        where: a filter: text, 'year >= 2020 and created >= 2024-01-31 and modified >= -7d', or a mapping,
            {"year": {">=": 2020}, "lang": {"in": ["en", "de"]}}.
        mode: "dense" ranks by the cosine of question and passage, "words" by BM25, "hybrid" by both.
        passages: rank passages instead of documents, so that a document may have several hits.
        min_score: leave out hits with a lower score, after the k best were found.
        exact: compare with every vector, even if an approximate index could answer.
        rerank: a cross-encoder's name or folder, or any callable `(query, texts) -> scores`; it puts the best
            `rerank_depth` hits in a new order.
        explain: find the sentence of each hit that is nearest to the question, for `Hit.why`.
        vector: the question's vector (dimensions,), used instead of embedding the text; any length but zero.
        like: uris of documents of the index that hits shall be like (examples.py). They are left out of the hits, and
            the text may be empty.
        unlike: uris of documents that hits shall be unlike; they are left out too.
        fold: return one hit for each family of hits whose passages have nearly the same text (ranking/families.py).
        newer: newer documents first: the half-life of a score above 0, such as "90d", or "90d:FIELD" for the dates of a
            field in place of `modified`. Documents without a date count as the median of the others.
        literal: ask for the whole text as it stands. Otherwise `"a phrase"`, `+word` and, after the last plain word,
            `-word` and `-"a phrase"` in the text are conditions, and the rest is asked (conditions.py).
        condition: the tree of `where`.
        asked: the text without the conditions in it.
        conditions: the conditions in the text.
        row: the vector scaled to length 1; None without a vector.

    Raises:
        BadInput: one of the values is wrong.
        FilterError: the filter is wrong.
    """

    text: str = ""
    k: int = 10
    where: Filter | None = None
    mode: Mode = "dense"
    passages: bool = False
    min_score: float | None = None
    exact: bool = False
    rerank: str | Scorer | None = None
    rerank_depth: int = RERANK_DEPTH
    explain: bool = False
    vector: NDArray[np.floating] | Sequence[float] | None = field(default=None, compare=False)
    like: Sequence[str] = ()
    unlike: Sequence[str] = ()
    fold: bool = False
    newer: str | None = None
    literal: bool = True
    condition: Where | None = field(init=False, repr=False, compare=False)
    row: Vector | None = field(init=False, repr=False, compare=False)
    asked: str = field(init=False, repr=False, compare=False)
    conditions: Conditions = field(init=False, repr=False, compare=False)
    _row_bytes: bytes = field(init=False, repr=False)  # for ==, because comparing arrays gives an array

    def __post_init__(self) -> None:
        check_hit_count("k", self.k)
        check_hit_count("rerank_depth", self.rerank_depth)
        check_mode(self.mode)
        check_min_score(self.min_score)
        for name in ("passages", "exact", "explain", "fold", "literal"):
            if not isinstance(getattr(self, name), int | np.bool_):
                raise BadInput(f"{name} is {getattr(self, name)!r}: give True or False")
        if not isinstance(self.rerank, str | None) and not callable(self.rerank):
            raise BadInput(f"rerank is {self.rerank!r:.80}: give a cross-encoder's name, or a callable")
        if self.newer is not None:
            Newer.read(self.newer)
        for name in ("like", "unlike"):
            object.__setattr__(self, name, read_uris(name, getattr(self, name)))
        if self.unlike and not self.like and self.text == "" and self.vector is None:
            raise BadInput("unlike alone asks for nothing: give a question, or documents as like")
        row = None if self.vector is None else vector_row(self.vector)
        if row is not None and self.mode == "words":
            raise BadInput("a search by words does not use a vector: leave it out, or use mode dense or hybrid")
        if (not self.like and (row is None or self.mode == "hybrid")) or not isinstance(self.text, str) or self.text:
            check_text(self.text)
        asked, conditions = (self.text, ()) if self.literal else read_conditions(self.text)
        object.__setattr__(self, "asked", asked)
        object.__setattr__(self, "conditions", conditions)
        if self.rerank is not None and not self.words:
            raise BadInput("a reranker needs the text of the question: give the text too, or leave rerank out")
        object.__setattr__(self, "k", int(self.k))
        object.__setattr__(self, "condition", filter_tree(self.where))
        object.__setattr__(self, "row", row)
        object.__setattr__(self, "_row_bytes", b"" if row is None else row.tobytes())
        if self.examples and self.ranked_by == "words":
            raise BadInput("a search by words does not use examples: leave them out, or use mode dense or hybrid")

    @property
    def ranked_by(self) -> Mode:
        """The mode that ranks: "words" if the text has only conditions, because then there is nothing to embed."""
        return "words" if self.conditions and not (self.asked or self.like) and self.row is None else self.mode

    @property
    def unit(self) -> Unit:
        """The unit that is ranked."""
        return "passage" if self.passages else "document"

    @property
    def words(self) -> str:
        """The text that is asked and the words that conditions require, to be marked in hits and read by a reranker."""
        return " ".join([self.asked, *(" ".join(one.words) for one in self.conditions if not one.excluded)]).strip()

    @property
    def examples(self) -> tuple[str, ...]:
        """The uris of all examples."""
        return (*self.like, *self.unlike)

    @property
    def needs_vector(self) -> bool:
        """Whether the text must be embedded, if the index has a model."""
        return self.row is None and bool(self.asked) and (self.mode != "words" or bool(self.explain))

    @property
    def depth(self) -> int:
        """Number of hits to rank before a reranker chooses k of them."""
        return self.k if self.rerank is None else max(self.k, self.rerank_depth)


def understood(query: Query, snapshots: Collection[Snapshot]) -> Query:
    """Return a question to these snapshots. `-word` in it is text if a document holds the word with its dash."""
    dashed = {
        condition.text
        for condition in query.conditions
        if condition.excluded
        and condition.text[1] != '"'
        and any(snapshot.holds_dashed(condition.words) for snapshot in snapshots)
    }
    if not dashed:
        return query
    asked, conditions = read_conditions(query.text, dashed)
    return changed(query, asked=asked, conditions=conditions)


def changed(query: Query, **members: Any) -> Query:
    """Return a question with other members, which are valid. Its text is not read again."""
    other = copy(query)
    for name, value in members.items():
        object.__setattr__(other, name, value)
    return other


def as_query(query: Query | str) -> Query:
    """Return a question; a text is asked in dense mode."""
    if not isinstance(query, Query | str):
        raise BadInput(f"the question is not a string or a Query but {type(query).__name__}")
    return Query(query) if isinstance(query, str) else query


def check_hit_count(name: str, value: object) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise BadInput(f"{name} is {value!r}: ask for a whole number of hits, 1 or more")


def check_mode(mode: object) -> None:
    if mode not in get_args(Mode):
        raise BadInput(f"mode {mode!r} is not one of {', '.join(get_args(Mode))}")


def check_min_score(value: object) -> None:
    if value is not None and (not isinstance(value, Real) or isinstance(value, bool)):
        raise BadInput(f"min_score is {value!r}: give a number")
    if isinstance(value, Real) and value != value:  # noqa: PLR0124 - an integer may be larger than a float
        raise BadInput("min_score is nan: give a number")


def check_text(text: object) -> None:
    """Raise BadInput for a question that cannot be asked."""
    if not isinstance(text, str):
        raise BadInput(f"the question is not a string but {type(text).__name__}")
    if (broken := broken_at(text)) is not None:
        raise BadInput(f"the question is not valid Unicode at character {broken}")
    if not text.strip():
        raise BadInput("the question is empty: ask with at least one word")


def vector_row(vector: NDArray[np.floating] | Sequence[float]) -> Vector:
    """Return the vector of a question scaled to length 1 (dimensions,), read-only.

    Raises:
        BadInput: it is not a row of finite numbers, or all of them are zero.
    """
    try:
        array = np.asarray(vector)
    except ValueError as error:
        raise BadInput(f"the question's vector is not an array of numbers: {error}") from error
    if array.ndim != 1:
        raise BadInput(f"the question's vector has shape {array.shape}: give one row of numbers")
    row: Vector = unit_rows(array[None], len(array), ["the question"])[0]
    row.flags.writeable = False
    return row
