"""A second look at the best hits: a scorer that reads question and passage together puts them in a new order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from indexer.encoders.torch.cross_encoder import Scorer
from indexer.errors import BadInput
from search.hits import Hits

_OF_SCORE = ("cosine", "bm25", "weights", "contributions")
"""What explains the first score, and not the scorer's."""

DEPTH = 50
"""Hits that are looked at again, unless more are asked for."""


def rerank(hits: Hits, scorer: Scorer, k: int) -> Hits:
    """The k best hits by the scorer, which is given each title and passage. Scores are the scorer's own.

    Raises:
        BadInput: it is no callable, or it returned another number of scores, or one that is no finite number.
    """
    if not callable(scorer):
        raise BadInput(f"the reranker {scorer!r:.40} is neither a model's name nor a callable")
    if not hits:
        return hits
    texts = [f"{hit.title} {hit.text}".strip() for hit in hits]
    given = scorer(hits.query, texts)
    try:
        # One by one: torch's numbers are not all known to numpy. A column has rows of one.
        scores = [float(np.squeeze(one)) if isinstance(one, np.ndarray | list) else float(one) for one in given]
    except (RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"the reranker gave no list of numbers: {error}") from error
    if len(scores) != len(texts):
        raise BadInput(f"the reranker returned {len(scores)} scores for {len(texts)} texts: it must give one each")
    if bad := [score for score in scores if not math.isfinite(score)]:
        raise BadInput(f"the reranker returned {bad[0]} as a score: only finite numbers rank")
    reranked = []
    for rank, (hit, score) in enumerate(zip(hits, scores, strict=True), 1):
        why = dict(hit.why or {})
        first = {"rank": rank, "score": hit.score} | {name: why.pop(name) for name in _OF_SCORE if name in why}
        own = {"weights": {"reranker": 1.0}, "contributions": {"reranker": score}}
        reranked.append(replace(hit, score=score, why={**why, **own, "first": first}))
    reranked.sort(key=lambda hit: -hit.score)  # stable: equals stay in the first order
    return replace(hits, hits=tuple(reranked[:k]), exact=False)
