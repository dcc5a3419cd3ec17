"""POST /v1/rerank and /v2/rerank: the scores of a cross-encoder in Cohere's form."""

from __future__ import annotations

import math
import uuid
from typing import TYPE_CHECKING, Any

from likewise.service.http.requests import RerankDocument, RerankRequest

if TYPE_CHECKING:
    from indexer.encoders.torch.cross_encoder import CrossEncoderScorer


def rerank(request: RerankRequest, scorer: CrossEncoderScorer, version: str) -> dict[str, Any]:
    """Return the answer of this version of Cohere's API: documents by relevance within 0 and 1, best first."""
    texts = [document if isinstance(document, str) else document.text for document in request.documents]
    scores = scorer(request.query, texts)
    order = sorted(range(len(texts)), key=lambda position: -scores[position])[: request.top_n]
    results = []
    for position in order:
        score = scores[position]
        relevance = score if scorer.gives_probabilities else 1 / (1 + math.exp(-max(-700.0, min(700.0, score))))
        result: dict[str, Any] = {"index": position, "relevance_score": relevance}
        if request.return_documents:
            document = request.documents[position]
            result["document"] = document.model_dump() if isinstance(document, RerankDocument) else {"text": document}
        results.append(result)
    return {"id": str(uuid.uuid4()), "results": results, "meta": {"api_version": {"version": version}}}
