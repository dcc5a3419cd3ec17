"""Reranking: a scorer that reads question and passage together puts the best hits in a new order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from indexer.encoders.torch.cross_encoder import Scorer
from indexer.errors import BadInput
from indexer.passages.cut import titled_text
from search.hits.hits import Hits

_FIRST_RANKING = ("cosine", "bm25", "weights", "contributions", "newer")
"""Members of `Hit.why` that explain the first ranking's score; they move under the name "first"."""


def rerank(hits: Hits, scorer: str | Scorer, question: str, k: int) -> Hits:
    """Return the k best hits by the scorer, which reads each title and passage. The hits have the scorer's scores.

    Args:
        scorer: a cross-encoder's name or folder, or a callable.

    Raises:
        ModelError: the cross-encoder cannot be loaded.
        BadInput: the scorer is not a callable, or did not return one finite number per hit.
    """
    if isinstance(scorer, str):
        from indexer.encoders import cross_encoder

        scorer = cross_encoder(scorer)
    if not callable(scorer):
        raise BadInput(f"the reranker {scorer!r:.40} is neither a model's name nor a callable")
    if not hits:
        return hits
    texts = [titled_text(hit.title, hit.text, hit.format) for hit in hits]
    returned = scorer(question, texts)
    try:
        # Converted one by one: numpy does not know all of torch's number types. A column has rows of one number.
        scores = [float(np.squeeze(one)) if isinstance(one, np.ndarray | list) else float(one) for one in returned]
    except (RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"the reranker did not return a list of numbers: {error}") from error
    if len(scores) != len(texts):
        raise BadInput(f"the reranker returned {len(scores)} scores for {len(texts)} texts: it must give one each")
    if bad := [score for score in scores if not math.isfinite(score)]:
        raise BadInput(f"the reranker returned the score {bad[0]}: it must return finite numbers")
    reranked = []
    for rank, (hit, score) in enumerate(zip(hits, scores, strict=True), 1):
        why = dict(hit.why or {})
        first = {"rank": rank, "score": hit.score} | {name: why.pop(name) for name in _FIRST_RANKING if name in why}
        parts = {"weights": {"reranker": 1.0}, "contributions": {"reranker": score}}
        reranked.append(replace(hit, score=score, why={**why, **parts, "first": first}))
    reranked.sort(key=lambda hit: -hit.score)  # stable: equal scores keep the first ranking's order
    return replace(hits, hits=tuple(reranked[:k]), exact=False)
