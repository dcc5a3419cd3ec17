"""`Plan`: a question to one index with everything that ranking needs."""

from __future__ import annotations

from typing import NamedTuple

from indexer.calibration.cosines import CosineStatistics
from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.port import Ranking
from search.query.newer import Weights
from search.query.query import Mode, Query


class Plan(NamedTuple):
    """A question to one commit of an index. `Answering.plan` makes it, and `rank` follows it.

    Attributes:
        query: the question, with its unit, its conditions, and whether hits are folded.
        mode: the legs that rank: cosines, words, or both.
        vector: the question and its examples as a unit row (dimensions,); not needed in words mode.
        where: the filter to rank with, in place of the query's.
        weights: weights of the documents, for newer ones first.
        left_out: the units of the examples, which are not hits.
        statistics: statistics of cosines: of the index's in hybrid mode. In dense mode, scores are z-scores by them.
        words_bias: how much more words weigh in this index, in hybrid mode.
        unread_bias: how much more words weigh because the model does not read the question, in hybrid mode.
        known_share: share of the question's words that the texts hold, if the model reads many languages. Below
            MIN_KNOWN_SHARE the query asks only for its names by words, except in words mode.
    """

    query: Query
    mode: Mode
    vector: Vector | None
    where: Where | None
    weights: Weights | None = None
    left_out: Ranking | None = None
    statistics: CosineStatistics | None = None
    words_bias: float = 0.0
    unread_bias: float = 0.0
    known_share: float = 1.0
