"""OpenAI's form: POST /v1/embeddings, vectors made by the model of an index, and GET /v1/models."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from indexer.encoders import Encoder
from indexer.encoders.recipes.port import of_role
from indexer.errors import TextTooLong
from indexer.records import Vector
from likewise.service.http.problems import Problem
from likewise.service.http.requests import EmbeddingsRequest
from likewise.service.served import ServedIndexes


def list_models(indexes: ServedIndexes) -> dict[str, Any]:
    """Return OpenAI's list of models: the names of the indexes that can embed texts."""
    named = [name for name, served in indexes.items() if served.searcher.recipe is not None]
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "likewise"} for name in named]
    return {"object": "list", "data": data}


def embed(request: EmbeddingsRequest, indexes: ServedIndexes) -> dict[str, Any]:
    """Return OpenAI's answer: the vectors in the order of the texts, and the number of tokens of the texts."""
    served = indexes[request.model]
    if served.searcher.recipe is None:
        raise Problem(400, "no-model", f"index {served.name!r} holds vectors of its owner's own and has no model")
    encoder = of_role(served.searcher.encoder, request.input_type)
    if request.dimensions not in (None, encoder.dimensions):
        raise Problem(
            400,
            "wrong-dimensions",
            f"dimensions is {request.dimensions}, and the model has {encoder.dimensions}: leave it out",
        )
    texts = _texts(request, encoder)
    try:
        vectors = encoder.encode(texts, role=request.input_type)
    except TextTooLong as error:
        raise Problem(
            400, error.slug, f"input {error.index} has {error.tokens} tokens and the model reads {error.limit}: cut it"
        ) from None
    tokens = sum(len(spans) + encoder.overhead(request.input_type) for spans in encoder.offsets(texts))
    data = [
        {"object": "embedding", "index": index, "embedding": _written(row, request.encoding_format)}
        for index, row in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": request.model, "usage": usage}


def _texts(request: EmbeddingsRequest, encoder: Encoder) -> list[str]:
    given = request.input
    if isinstance(given, str):
        return [given]
    if isinstance(given[0], str):
        return [str(text) for text in given]
    rows = [given] if isinstance(given[0], int) else given
    return [_decoded(row, encoder) for row in rows]


def _decoded(ids: list[int], encoder: Encoder) -> str:
    """Return the text of token ids. If the ids clearly belong to another model's tokenizer, the error says so."""
    tokenizer = getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        raise Problem(400, "no-tokens", "this model does not take token ids: send text")
    text: str | None = tokenizer.decode(ids)
    if text is None:
        raise Problem(
            400,
            "unknown-token",
            "input has token ids that this model's tokenizer does not know: send text (in LangChain, "
            "OpenAIEmbeddings(check_embedding_ctx_length=False))",
        )
    return text


def _written(row: Vector, encoding: str) -> str | list[float]:
    if encoding == "base64":
        return base64.b64encode(row.astype(np.dtype("<f4")).tobytes()).decode("ascii")
    return row.tolist()  # type: ignore[no-any-return]
