"""Encoding the same texts with several encoders. Encoders that share a model run it once."""

from __future__ import annotations

from collections.abc import Sequence

from indexer.encoders.recipes.port import Encoder, Role
from indexer.encoders.torch.encoder import TorchEncoder, encode_shared
from indexer.records import Vector


def encode_many(
    encoders: Sequence[Encoder], texts: Sequence[str], role: Role = "document", truncate: bool = False
) -> list[Vector]:
    """Encode texts with several encoders; encoders of one model share a forward pass.

    Returns:
        Unit rows (texts, dimensions) of each encoder, in the order of `encoders`.

    Raises:
        TextTooLong: a text is over an encoder's limit and `truncate` is False.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, encoder in enumerate(encoders):
        key: tuple[int, ...] = (id(encoder),)
        if isinstance(encoder, TorchEncoder):
            prompt = encoder.recipe.query_prompt if role == "query" else encoder.recipe.document_prompt
            key = (id(encoder.transformer), encoder.max_tokens, hash(prompt))
        groups.setdefault(key, []).append(index)
    encoded: dict[int, Vector] = {}
    for members in groups.values():
        shared = [each for index in members if isinstance(each := encoders[index], TorchEncoder)]
        if shared:
            encoded |= zip(members, encode_shared(shared, texts, role, truncate), strict=True)
        else:
            vectors = encoders[members[0]].encode(texts, role, truncate)
            encoded |= dict.fromkeys(members, vectors)
    return [encoded[index] for index in range(len(encoders))]
