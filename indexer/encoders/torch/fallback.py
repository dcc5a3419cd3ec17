"""Models whose modules likewise does not know, such as word embeddings: sentence-transformers encodes with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tokenizers
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from indexer.encoders.recipes.port import Role, Tokenizing
from indexer.encoders.recipes.recipe import Recipe
from indexer.encoders.tokens.batching import unit
from indexer.encoders.tokens.tokenizer import Tokenizer
from indexer.encoders.torch.automodel import cannot_load, quiet
from indexer.encoders.torch.checkpoint import Checkpoint
from indexer.records import Vector


@dataclass(frozen=True, slots=True)
class SentenceTransformerEncoder(Tokenizing):
    """An `Encoder` that passes texts to a SentenceTransformer, and counts tokens with its tokenizer."""

    recipe: Recipe
    tokenizer: Tokenizer
    model: Any

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        texts = texts if isinstance(texts, str) else list(texts)
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        counts = [len(row) for row in self.tokenizer.ids(texts, role, truncate)]
        full = [index for index, count in enumerate(counts) if count == self.max_tokens]
        truncated = list(texts)
        for index, spans in zip(full, self.offsets([texts[index] for index in full]), strict=True):
            truncated[index] = texts[index][: spans[: self.max_tokens - self.overhead(role)][-1, 1]]
        prompt = self.recipe.query_prompt if role == "query" else self.recipe.document_prompt
        # Only a Router needs the task: to a model's own modules, `task` may mean something else.
        task = {"task": role} if any(type(module).__name__ == "Router" for module in self.model) else {}
        vectors = self.model.encode(truncated, prompt=prompt, show_progress_bar=False, **task)
        kept = np.asarray(vectors, np.float32)[:, : self.dimensions]
        return unit(kept, range(len(kept)), self.recipe.model)


def open_sentence_transformer(checkpoint: Checkpoint, device: str) -> SentenceTransformerEncoder:
    """Load a model through sentence-transformers. Raises ModelError if that fails."""
    from sentence_transformers import SentenceTransformer

    spec = checkpoint.spec
    try:
        with quiet(own_code=checkpoint.trust_remote_code):
            model = SentenceTransformer(
                str(checkpoint.folder),
                device=device,
                trust_remote_code=checkpoint.trust_remote_code,
                local_files_only=True,
            )
    except Exception as error:
        raise cannot_load(repr(spec.model), checkpoint.transformer or checkpoint.folder, error) from error
    if spec.route:
        model = SentenceTransformer(modules=[*model[0].sub_modules[spec.route], *list(model)[1:]], device=device)
    first = model[0]
    if type(first).__name__ == "Router":
        # Documents are cut by the tokens of their own route.
        first = first.sub_modules[first._resolve_route(task="document", modality="text")][0]
    longest: Any = getattr(first, "max_seq_length", None)
    limit = checkpoint.limit_up_to(longest)
    static = type(first).__name__ == "StaticEmbedding"  # It reads no special tokens.
    return SentenceTransformerEncoder(
        checkpoint.recipe(int(model.get_embedding_dimension() or 0), limit),
        Tokenizer(_tokenizer_json(first), limit, *checkpoint.prompts, special_tokens=not static),
        model,
    )


def _tokenizer_json(module: Any) -> str:
    """Return a module's tokenizer as JSON. A module of words has none and gets one of words and
    punctuation."""
    tokenizer = getattr(module, "tokenizer", None)
    if not hasattr(tokenizer, "to_str"):
        tokenizer = getattr(tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        tokenizer = tokenizers.Tokenizer(WordLevel({"": 0}, unk_token=""))
        tokenizer.pre_tokenizer = Whitespace()
    return str(tokenizer.to_str())
