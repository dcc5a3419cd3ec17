"""BERT's forward pass for inference on a CPU (Devlin et al., 2018): packed tokens, fused products, no padding.

It reads the weights of BERT, RoBERTa and XLM-RoBERTa checkpoints, which are one architecture, without
importing transformers. automodel.py runs every other architecture. The tests compare the hidden states with those of
transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.encoders.recipes.locate import read_json
from indexer.encoders.torch.pooling import Packed
from indexer.encoders.torch.weights import load_weights, weight_shards
from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch

_WORDS = "embeddings.word_embeddings.weight"
_TYPES = ("bert", "roberta", "xlm-roberta")
_NEEDED = {"num_hidden_layers", "hidden_size", "num_attention_heads"}
_ROWS = 2048
"""Number of tokens in a usual batch. Packed weights are laid out for it; batches of other sizes work too."""
_LANES = 16
"""Number of float32 values in a register of 512 bits."""
_WINDOW = 32
"""Number of tokens in one attention window, which several texts of up to _LANES tokens share."""
_ACTIVATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}


def readable(folder: Path) -> bool:
    """Return whether `Bert` can compute the checkpoint in a folder."""
    config = read_json(folder / "config.json", {})
    return (
        config.get("model_type") in _TYPES
        and set(config) >= _NEEDED
        and config.get("hidden_act") in _ACTIVATIONS
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder", False)
        and not config.get("auto_map")
        and bool(weight_shards(folder))
    )


class Bert:
    """A `Transformer` with a loaded checkpoint."""

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        import torch

        config = read_json(folder / "config.json", {})
        weights = load_weights(folder)
        # Checkpoints converted from TensorFlow, such as bert-base-uncased, name a norm's parameters gamma and beta.
        for name in [name for name in weights if name.endswith(("LayerNorm.gamma", "LayerNorm.beta"))]:
            weights[name.replace(".gamma", ".weight").replace(".beta", ".bias")] = weights.pop(name)
        prefix = next((name.removesuffix(_WORDS) for name in weights if name.endswith(_WORDS)), "")

        def take(name: str, kind: torch.dtype = dtype) -> torch.Tensor:
            if prefix + name not in weights:
                raise ModelError(f"model {folder} lacks its weights {prefix}{name}: fetch it again")
            return weights[prefix + name].to(kind)

        self.layers: int = config["num_hidden_layers"]
        self.hidden: int = config["hidden_size"]
        self.dtype = dtype
        self._heads: int = config["num_attention_heads"]
        if self.layers < 1 or self._heads < 1 or self.hidden < 1 or self.hidden % self._heads:
            raise ModelError(
                f"model {folder} has {self.layers} layers, and {self._heads} heads for {self.hidden} dimensions, which "
                "cannot be: fetch it again"
            )
        self._epsilon: float = config.get("layer_norm_eps", 1e-12)
        gelu = _ACTIVATIONS[config["hidden_act"]]
        # RoBERTa numbers positions from the padding id + 1.
        first = 0 if config["model_type"] == "bert" else config.get("pad_token_id", 1) + 1
        self._words = take(_WORDS)
        # All tokens of a single text are in segment 0, so its embedding is added to the positions in advance.
        segment = take("embeddings.token_type_embeddings.weight", torch.float32)[0]
        positions = take("embeddings.position_embeddings.weight", torch.float32)[first:]
        self._positions = (positions + segment).to(dtype)
        self.positions = len(self._positions)
        self._embedding_norm = _norm(take, "embeddings.LayerNorm")
        self.blocks = [_Block(take, f"encoder.layer.{n}.", gelu) for n in range(self.layers)]
        has_pooler = prefix + "pooler.dense.weight" in weights
        self._pooler = (take("pooler.dense.weight"), take("pooler.dense.bias")) if has_pooler else None

    def states(self, batch: Packed, wanted: Sequence[int]) -> dict[int, torch.Tensor]:
        """Return hidden states (tokens, hidden) by layer, 0 is the embedding layer, packed like the batch."""
        import torch
        import torch.nn.functional as F

        tokens = len(batch.ids)
        where = torch.cat([torch.arange(length).repeat(count) for count, length in batch.runs])
        spare = (_rows(tokens) if self.dtype == torch.bfloat16 else tokens) - tokens
        x = self._words[F.pad(batch.ids, (0, spare))] + self._positions[F.pad(where, (0, spare))]
        x = F.layer_norm(x, (self.hidden,), *self._embedding_norm, self._epsilon)
        kept = {0: x[:tokens]} if 0 in wanted else {}
        for number, block in enumerate(self.blocks[: max(wanted)], start=1):
            x = self._block(block, x, batch)
            if number in wanted:
                kept[number] = x[:tokens]
        return kept

    def pooler(self, first: torch.Tensor) -> torch.Tensor | None:
        """Apply the checkpoint's pooler to the last layer's first tokens (texts, hidden); None if it has no pooler."""
        import torch
        import torch.nn.functional as F

        return None if self._pooler is None else torch.tanh(F.linear(first.to(self.dtype), *self._pooler))

    def _block(self, block: _Block, x: torch.Tensor, batch: Packed) -> torch.Tensor:
        import torch.nn.functional as F

        mixed = self._attention(block.query(x), block.key(x), block.value(x), batch)
        x = F.layer_norm(block.out.plus(mixed, x), (self.hidden,), *block.attention_norm, self._epsilon)
        return F.layer_norm(block.feed_forward(x), (self.hidden,), *block.output_norm, self._epsilon)

    def _attention(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, batch: Packed) -> torch.Tensor:
        """Return self-attention (tokens, hidden) within each text, computed together for all texts of one length.

        Several short texts share one window under a mask: see `_attend`.
        """
        import torch

        parts = []
        start = 0
        for count, length in batch.runs:
            per_window = min(count, _WINDOW // length) if length <= _LANES else 1
            for windows, texts in ((count // per_window, per_window), (1, count % per_window)):
                end = start + windows * texts * length
                if end > start:
                    q, k, v = (part[start:end].view(windows, texts * length, -1) for part in (query, key, value))
                    parts.append(_attend(q, k, v, self._heads, length).view(end - start, self.hidden))
                start = end
        if start < len(query):
            parts.append(query[start:])  # Rows that only fill the batch belong to no text and are never read.
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, heads: int, length: int) -> torch.Tensor:
    """Return attention within windows (windows, tokens, hidden) of one or more texts of one length.

    Keys are padded to a multiple of 16 and masked. torch's kernel computes an incomplete row of 16 one number at a
    time, so 12 keys take more than twice the time of 16 keys. If two or more short texts share 32 keys and are masked
    from each other, they take even less time.
    """
    import torch.nn.functional as F

    tokens = query.shape[1]
    room = -tokens % _LANES
    if room:
        key, value = (F.pad(part, (0, 0, 0, room)) for part in (key, value))
    mask = _mask(tokens, tokens + room, length, query.dtype) if room or tokens > length else None
    q, k, v = (part.view(len(part), part.shape[1], heads, -1).transpose(1, 2) for part in (query, key, value))
    # The kernel writes in the order (text, token, head), so that the transposition back needs no copy.
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(query.shape)


@lru_cache(maxsize=1024)
def _mask(tokens: int, keys: int, length: int, dtype: torch.dtype) -> torch.Tensor:
    """Return the mask (tokens, keys) for attention scores: 0 within a text, minus infinity elsewhere."""
    import torch

    text = torch.arange(keys) // length
    text[tokens:] = -1
    return torch.zeros(tokens, keys, dtype=dtype).masked_fill_(text[:tokens, None] != text, float("-inf"))


def _rows(tokens: int) -> int:
    """Return the number of rows to which a batch of this many tokens is padded.

    oneDNN compiles a kernel for each number of rows, in 27 ms and some megabytes, while the product takes 3 ms.
    """
    return next((rows for rows in (16, 32, 64, 128) if tokens <= rows), -(-tokens // 128) * 128)


class _Linear:
    """A linear layer. In bfloat16 it uses oneDNN, with the weight packed once and the next operation fused in.

    With AMX this is 1.5 to 2 times as fast as F.linear, which packs the weight in every call. Query, key and value are
    three products. One fused product is not faster, and attention reads its output more slowly.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        import torch

        self._weight, self.bias = weight, bias
        self._packed = None
        ops = torch.ops.mkldnn
        if weight.dtype == torch.bfloat16 and hasattr(ops, "_reorder_linear_weight") and _packs_bfloat16():
            self._packed = ops._reorder_linear_weight(weight, _ROWS)
            self._weight = weight[:0]

    @property
    def weight(self) -> torch.Tensor:
        """The weight (out, in) as it was before packing."""
        return self._weight if self._packed is None else self._packed.to_dense()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._product(x, "none", "")

    def gelu(self, x: torch.Tensor, approximate: str) -> torch.Tensor:
        """Return GELU of the product; `approximate` is `none` or `tanh`, as in torch."""
        return self._product(x, "gelu", approximate)

    def plus(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the sum of the product and `residual`."""
        import torch
        import torch.nn.functional as F

        if self._packed is None:
            return F.linear(x, self._weight, self.bias).add_(residual)
        fused = torch.ops.mkldnn._linear_pointwise.binary
        out: torch.Tensor = fused(x, residual, self._packed, self.bias, "add")
        return out

    def _product(self, x: torch.Tensor, then: str, approximate: str) -> torch.Tensor:
        import torch
        import torch.nn.functional as F

        if self._packed is None:
            product = F.linear(x, self._weight, self.bias)
            return F.gelu(product, approximate=approximate) if then == "gelu" else product
        fused = torch.ops.mkldnn._linear_pointwise
        out: torch.Tensor = fused(x, self._packed, self.bias, then, [], approximate)
        return out


def _packs_bfloat16() -> bool:
    """Return whether oneDNN packs bfloat16 on this CPU. It needs AVX-512; torch's own products do not."""
    import torch

    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class FeedForward:
    """A feed-forward layer: two products with the activation between, plus the residual."""

    def __init__(self, up: _Linear, down: _Linear, approximate: str) -> None:
        self.up, self.down, self.approximate = up, down, approximate

    def activated(self, x: torch.Tensor) -> torch.Tensor:
        """Return the activation of the first product."""
        return self.up.gelu(x, self.approximate)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.down.plus(self.activated(x), x)


class _Block:
    """The weights of one transformer layer."""

    def __init__(self, take: Callable[[str], torch.Tensor], prefix: str, gelu: str) -> None:
        def linear(name: str) -> _Linear:
            return _Linear(take(f"{prefix}{name}.weight"), take(f"{prefix}{name}.bias"))

        self.query = linear("attention.self.query")
        self.key = linear("attention.self.key")
        self.value = linear("attention.self.value")
        self.out = linear("attention.output.dense")
        self.feed_forward: Callable[[torch.Tensor], torch.Tensor]
        self.feed_forward = FeedForward(linear("intermediate.dense"), linear("output.dense"), gelu)
        self.attention_norm = _norm(take, prefix + "attention.output.LayerNorm")
        self.output_norm = _norm(take, prefix + "output.LayerNorm")


def _norm(take: Callable[[str], torch.Tensor], name: str) -> tuple[Any, Any]:
    return take(f"{name}.weight"), take(f"{name}.bias")
