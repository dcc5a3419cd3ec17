"""The reasons for a hit's score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from indexer.columns import searched_columns
from indexer.passages.cut import titled_text
from indexer.stores.port import Condition, Conditions, Passage
from indexer.stores.words.exact import places
from search.hits.marks import QuestionWords, visible_places

if TYPE_CHECKING:
    from search.hits.hits import Hit


def reasons(
    facts: Callable[[], Mapping[str, Any]],
    passage: Passage,
    question: QuestionWords,
    is_far: bool,
    conditions: Conditions = (),
    min_share: float = 1.0,
) -> dict[str, Any]:
    """Return the reasons for one hit's score, with the words of the question marked.

    Hits call this when their reasons are first read: marking words took 54 % of the time of a search by words (2 cores,
    Xeon), and most programs do not read them.

    Args:
        facts: returns cosine, bm25, weights and contributions; they come first.
        question: its words are marked under the name "words".
        is_far: whether the passage is no nearer than the best hits of unrelated questions usually are. It is a weak
            match, unless it holds the question.
        conditions: of the question.
        min_share: as in `holds`.
    """
    words = question.mark(passage.text, passage.start, passage.format)
    weak = is_far and not holds(question, passage, min_share)
    why = {**facts(), "words": words, "weak": weak}
    if conditions:
        why["conditions"] = [_condition(one, passage) for one in conditions]
    return why


def holds(question: QuestionWords, found: Passage | Hit, min_share: float) -> bool:
    """Return whether a passage, with its title, its other columns and the name of its file, holds at least this share
    of the words of a question, such as an error number that no vector knows. Rows of a table often lack what the name
    of the table says."""
    text = titled_text(found.title, found.text, found.format)
    columns = "\n".join(searched_columns(found.format, found.metadata))
    return question.share_in(f"{text}\n{columns}\n{PurePath(found.path or '').stem}") >= min_share


def _condition(condition: Condition, passage: Passage) -> dict[str, Any]:
    """Return a condition with its places in the passage. A document may meet it elsewhere in its text."""
    find = partial(places, words=condition.words)
    spans = [] if condition.excluded else visible_places(passage.text, passage.start, passage.format, find)
    return {"text": condition.text, "excluded": condition.excluded, "places": spans}
