"""The forward pass of encoders for inference on a CPU: packed tokens, fused products, no padding.

One pass computes every architecture of `_ARCHITECTURES` from its weights, without importing transformers: BERT (Devlin
et al., 2018) and its successors with relative positions (MPNet), or with rotary positions, local attention and gated
feed-forward layers (ModernBERT). automodel.py runs every other architecture, and every checkpoint with a setting that
is not known here. The tests compare the hidden states with those of transformers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from indexer.encoders.machine.hardware import cpu_features
from indexer.encoders.recipes.locate import read_json
from indexer.encoders.torch.automodel import MAX_POSITIONS, from_padding
from indexer.encoders.torch.pooling import Packed
from indexer.encoders.torch.weights import load_weights, unpickled, weight_shards
from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch

_ROWS = 2048
"""Number of tokens in a usual batch. Packed weights are laid out for it; batches of other sizes work too."""
_LANES = 16
"""Number of float32 values in a register of 512 bits."""
_WINDOW = 32
"""Number of tokens in one attention window, which several texts of up to _LANES tokens share."""
_LONG = 512
"""Maximum number of tokens of a text whose incomplete row of keys is filled. Masks of longer texts are too large."""
_BLOCK = 64
"""Number of tokens that share the keys around them, if a layer attends to near tokens alone."""
_ACTIVATIONS = {"gelu": ("gelu", "none"), "gelu_new": ("gelu", "tanh"), "silu": ("swish", "")}
_ACTIVATIONS["gelu_pytorch_tanh"] = _ACTIVATIONS["gelu_new"]
"""oneDNN's name and algorithm of an activation."""
_MAX_LAYERS = 1024
"""Number of layers that no model reaches."""
_UNKNOWN = "auto_map", "quantization_config", "rope_scaling"
"""Settings that are computed only if they are empty or left out."""
_FALSE = dict.fromkeys(("is_decoder", "add_cross_attention", "attention_bias", "mlp_bias", "norm_bias"), False)
"""Settings that are computed only if they are false or left out; transformers tells what is wrong with null."""
_NEEDED = ("num_hidden_layers", "hidden_size", "num_attention_heads")

_WORDS, _SEGMENTS = "embeddings.word_embeddings", "embeddings.token_type_embeddings"
_POSITIONS = "embeddings.position_embeddings"
_ATTENTION = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")


@dataclass(frozen=True)
class _Architecture:
    """The names of an architecture's weights, and how it differs from BERT.

    `NAME:i/n` is the i-th of n equal parts of a weight. An empty name is a weight that the architecture does not have.

    Attributes:
        embeddings: of words, of segments, and of positions, which are rotary if there is no name.
        embedding_norm, final_norm: norms of the first layer's input and of the last layer's output. Architectures with
            a final norm also norm the input of the two parts of each layer, and all others the output.
        relative: biases of attention scores by the distance between two tokens.
        attention: products for queries, keys and values, and the product after attention.
        feed_forward: the product with the activation, the last product, and in gated layers the product that is
            multiplied with the activation. The first product of a gated layer has no bias, and neither has the third.
        norms: of attention and of the feed-forward layer.
        biased: whether products have biases, and whether norms have.
        renamed: BERT's names of settings of config.json, by the architecture's own names.
        fixed: settings of config.json that have only one known value, or are left out.
    """

    embeddings: tuple[str, str, str] = (_WORDS, _SEGMENTS, _POSITIONS)
    embedding_norm: str = "embeddings.LayerNorm"
    block: str = "encoder.layer."
    attention: tuple[str, str, str, str] = _ATTENTION
    feed_forward: tuple[str, ...] = ("intermediate.dense", "output.dense")
    norms: tuple[str, str] = ("attention.output.LayerNorm", "output.LayerNorm")
    final_norm: str = ""
    relative: str = ""
    pooler: str = ""
    biased: tuple[bool, bool] = (True, True)
    renamed: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)


_BERT = _Architecture(pooler="pooler.dense", fixed={"position_embedding_type": "absolute"})
_ARCHITECTURES = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta"), _BERT),
    "mpnet": _Architecture(
        embeddings=(_WORDS, "", _POSITIONS),
        attention=("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o"),
        norms=("attention.LayerNorm", "output.LayerNorm"),
        relative="encoder.relative_attention_bias",
        pooler="pooler.dense",
        fixed={"pad_token_id": 1, "relative_attention_num_buckets": 32},
    ),
    "distilbert": _Architecture(
        embeddings=(_WORDS, "", _POSITIONS),
        block="transformer.layer.",
        attention=("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
        feed_forward=("ffn.lin1", "ffn.lin2"),
        norms=("sa_layer_norm", "output_layer_norm"),
        renamed={
            **{"dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads"},
            "activation": "hidden_act",
        },
        fixed={"layer_norm_eps": 1e-12},
    ),
    "modernbert": _Architecture(
        embeddings=("embeddings.tok_embeddings", "", ""),
        embedding_norm="embeddings.norm",
        block="layers.",
        attention=("attn.Wqkv:0/3", "attn.Wqkv:1/3", "attn.Wqkv:2/3", "attn.Wo"),
        feed_forward=("mlp.Wi:0/2", "mlp.Wo", "mlp.Wi:1/2"),
        norms=("attn_norm", "mlp_norm"),
        final_norm="final_norm",
        biased=(False, False),
        renamed={"hidden_activation": "hidden_act", "norm_eps": "layer_norm_eps"},
    ),
    "nomic_bert": _Architecture(
        embeddings=(_WORDS, _SEGMENTS, ""),
        embedding_norm="emb_ln",
        block="encoder.layers.",
        attention=("attn.Wqkv:0/3", "attn.Wqkv:1/3", "attn.Wqkv:2/3", "attn.out_proj"),
        feed_forward=("mlp.fc12", "mlp.fc2", "mlp.fc11"),
        norms=("norm1", "norm2"),
        biased=(False, True),
    ),
    "gte": _Architecture(
        embeddings=(_WORDS, _SEGMENTS, ""),
        attention=("attention.qkv_proj:0/3", "attention.qkv_proj:1/3", "attention.qkv_proj:2/3", "attention.o_proj"),
        feed_forward=("mlp.up_gate_proj:1/2", "mlp.down_proj", "mlp.up_gate_proj:0/2"),
        norms=("attn_ln", "mlp_ln"),
    ),
}
"""Architectures by `model_type`, with the names in the files that transformers and the models' makers write."""


class _Reach(NamedTuple):
    """The base of the rotary angles of a layer, and the maximum distance between tokens that attend to each other."""

    theta: float | None = None
    tokens: int | None = None


def _reaches(config: Mapping[str, Any]) -> list[_Reach] | None:
    """Return the reach of each layer of a model with rotary positions; None for settings that are not known here."""
    layers, ropes = int(config["num_hidden_layers"]), config.get("rope_parameters") or {}
    if config["model_type"] != "modernbert":
        kinds, ropes, reach = ["full_attention"] * layers, {"full_attention": ropes}, 0
    else:
        every, window = config.get("global_attn_every_n_layers", 3), config.get("local_attention", 128)
        # transformers reads "sliding_window" as half of "local_attention".
        if type(every) is not int or every < 1 or type(window) is not int or "sliding_window" in config:
            return None
        kinds = config.get("layer_types") or [
            "sliding_attention" if layer % every else "full_attention" for layer in range(layers)
        ]
        # Files that transformers wrote before version 5 have two settings instead of `rope_parameters`.
        ropes = ropes or {
            "full_attention": {"rope_theta": config.get("global_rope_theta")},
            "sliding_attention": {"rope_theta": config.get("local_rope_theta")},
        }
        reach = window // 2
    reaches = []
    for kind in kinds:
        rope = ropes.get(kind) or {}
        theta = rope.get("rope_theta")
        if {"rope_type": "default", **rope} != {"rope_type": "default", "rope_theta": theta} or not theta:
            return None
        reaches.append(_Reach(float(theta), reach if kind == "sliding_attention" else None))
    return reaches if len(reaches) == layers else None


def settings(folder: Path) -> dict[str, Any] | None:
    """Return the settings of the checkpoint in a folder, named as BERT names them; None if `Native` cannot compute it.

    `reaches` holds the reach of each layer.
    """
    config = read_json(folder / "config.json", {})
    architecture = _ARCHITECTURES.get(config.get("model_type"))
    if architecture is None or not weight_shards(folder):
        return None
    renamed = {name: config.get(own) for own, name in architecture.renamed.items()}
    if any(config.get(name, value) != value for name, value in {**_FALSE, **architecture.fixed, **renamed}.items()):
        return None
    config |= renamed
    # transformers can save NomicBERT and GTE with other names of weights than their makers.
    query = f"{architecture.block}0.{architecture.attention[0].partition(':')[0]}.weight"
    if (
        any(type(config.get(name)) is not int for name in _NEEDED)
        or config.get("hidden_act") not in _ACTIVATIONS
        or any(map(config.get, _UNKNOWN))
        or type(config.get("layer_norm_eps", 0.0)) is not float
        or (config.get("type_vocab_size") == 0 and config["model_type"] != "gte")
        or ((names := _weight_names(folder)) and not any(name.endswith(query) for name in names))
    ):
        return None
    if architecture.embeddings[2]:
        return {**config, "reaches": [_Reach()]}
    layers, width, heads = map(config.__getitem__, _NEEDED)
    positions = config.get("max_position_embeddings")
    if (
        "layer_norm_eps" not in config
        or type(positions) is not int
        or positions < 1
        or not 0 < layers < _MAX_LAYERS
        or heads < 1
        or width % (2 * heads)
        or config.get("head_dim") not in (None, width // heads)
    ):
        return None
    reaches = _reaches(config)
    return None if reaches is None else {**config, "reaches": reaches}


def _weight_names(folder: Path) -> set[str]:
    """Return the names of the weights. Damaged files have none."""
    from safetensors import safe_open

    names: set[str] = set()
    for file in weight_shards(folder):
        with suppress(Exception):  # Whoever loads the weights reports the damage.
            if file.suffix == ".safetensors":
                with safe_open(file, "pt") as opened:
                    names.update(opened.keys())
            else:
                names.update(unpickled(file, "meta"))
    return names


class Native:
    """A `Transformer` with a loaded checkpoint, whose `settings` are not None."""

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        import torch

        config = settings(folder)
        assert config is not None
        linear, dtype = (_EightBitLinear, torch.float32) if dtype == torch.int8 else (_Linear, dtype)
        self._names = names = _ARCHITECTURES[config["model_type"]]
        weights = load_weights(folder)
        # Checkpoints converted from TensorFlow, such as bert-base-uncased, name a norm's parameters gamma and beta.
        for name in [name for name in weights if name.endswith(("LayerNorm.gamma", "LayerNorm.beta"))]:
            weights[name.replace(".gamma", ".weight").replace(".beta", ".bias")] = weights.pop(name)
        words, segments, positions = (name and f"{name}.weight" for name in names.embeddings)
        prefix = next((name.removesuffix(words) for name in weights if name.endswith(words)), "")

        def take(name: str, kind: torch.dtype = dtype) -> torch.Tensor:
            name, _, part = name.partition(":")
            if prefix + name not in weights:
                raise ModelError(f"model {folder} lacks its weights {prefix}{name}: fetch it again")
            weight = weights[prefix + name].to(kind)
            return weight.chunk(int(part[2:]))[int(part[0])] if part else weight

        self.layers: int = config["num_hidden_layers"]
        self.hidden: int = config["hidden_size"]
        self.dtype = dtype
        self._heads: int = config["num_attention_heads"]
        if min(self.layers, self._heads, self.hidden) < 1 or self.hidden % self._heads:
            raise ModelError(
                f"model {folder} has {self.layers} layers, and {self._heads} heads for {self.hidden} dimensions, "
                "which cannot be: fetch it again"
            )
        self._epsilon: float = config.get("layer_norm_eps", 1e-12)
        reaches: list[_Reach] = config["reaches"]
        # A table in 16 bits stays in the mapped file, which processes share. Few of its rows are ever read.
        stored = weights[prefix + words].dtype if positions and prefix + words in weights else dtype
        self._words = take(words, stored if stored.itemsize <= dtype.itemsize else dtype)
        # Most tokens are in segment 0. Its embedding is added in advance, and then only the difference to it.
        has_segments = segments and config.get("type_vocab_size") != 0
        table = take(segments, torch.float32) if has_segments else torch.zeros(1, self.hidden)
        segment = table[0]
        self._segments = (table - segment).to(dtype) if has_segments else None
        self._first = from_padding(config)
        self._positions = (take(positions, torch.float32) + segment).to(dtype) if positions else None
        if self._positions is None:
            self._words = (self._words + segment).to(dtype)
            self.positions = min(config["max_position_embeddings"], MAX_POSITIONS)
        else:
            self.positions = len(self._positions) - self._first
        self._relative_bias = None
        if names.relative:  # (heads, distances), as far as a window reaches with the keys that fill it
            far = _buckets(self.positions + _WINDOW)
            self._relative_bias = take(names.relative + ".weight")[far].T.contiguous()
        self._embedding_norm = _norm(take, names, names.embedding_norm)
        self._final_norm = _norm(take, names, names.final_norm)
        activation = _ACTIVATIONS[config["hidden_act"]]
        self.blocks = [_Block(take, names, number, activation, linear) for number in range(self.layers)]
        if (self._words.shape[1], self.blocks[0].key.width) != (self.hidden, self.hidden):
            raise ModelError(f"model {folder} has weights of other sizes than its config.json says: fetch it again")
        self._reaches = reaches * self.layers if len(reaches) == 1 else reaches
        pooled = names.pooler and prefix + names.pooler + ".weight" in weights
        self._pooler = (take(names.pooler + ".weight"), take(names.pooler + ".bias")) if pooled else None

    def states(self, batch: Packed, wanted: Sequence[int]) -> dict[int, torch.Tensor]:
        """Return hidden states (tokens, hidden) by layer, 0 is the embedding layer, packed like the batch."""
        import torch
        import torch.nn.functional as F

        tokens = len(batch.ids)
        where = self._places(batch)
        spare = (_rows(tokens) if self.dtype == torch.bfloat16 else tokens) - tokens
        where = F.pad(where, (0, spare))
        x = self._words[F.pad(batch.ids, (0, spare))].to(self.dtype)
        if self._positions is not None:
            x = x + self._positions[where + self._first]
        if batch.segments is not None and self._segments is not None:
            x = x + self._segments[F.pad(batch.segments, (0, spare))]
        x = self._normed(x, self._embedding_norm)
        kept = {0: x[:tokens]} if 0 in wanted else {}
        views = {
            reach: _View(list(self._windows(batch, reach.tokens)), self._angles(reach.theta, where))
            for reach in set(self._reaches)
        }
        for number, block in enumerate(self.blocks[: max(wanted)], start=1):
            x = self._block(block, x, views[self._reaches[number - 1]])
            if number in wanted:
                kept[number] = (x if number < self.layers else self._normed(x, self._final_norm))[:tokens]
        return kept

    def pooler(self, first: torch.Tensor) -> torch.Tensor | None:
        """Apply the checkpoint's pooler to the last layer's first tokens (texts, hidden); None if it has no pooler."""
        import torch
        import torch.nn.functional as F

        return None if self._pooler is None else torch.tanh(F.linear(first.to(self.dtype), *self._pooler))

    def _places(self, batch: Packed) -> torch.Tensor:
        """Return the place of each token in its text (tokens,).

        RoBERTa numbers positions from the padding id + 1, and a token of padding that stands in a text, place -1, has
        the padding's position and is not counted.
        """
        import torch

        places = torch.cat([torch.arange(length).repeat(count) for count, length in batch.runs])
        real = (batch.ids != self._first - 1).long()
        if not self._first or real.all():
            return places
        counted = real.cumsum(0)
        before = (counted - real)[torch.arange(len(places)) - places]
        return torch.where(real == 1, counted - before - 1, -1)

    def _normed(self, x: torch.Tensor, norm: _Norm | None) -> torch.Tensor:
        import torch.nn.functional as F

        return x if norm is None else F.layer_norm(x, (self.hidden,), *norm, self._epsilon)

    def _block(self, block: _Block, x: torch.Tensor, view: _View) -> torch.Tensor:
        if not self._names.final_norm:
            x = self._normed(block.out.plus(self._attention(block, x, view), x), block.attention_norm)
            return self._normed(block.feed_forward(x, x), block.output_norm)
        mixed = self._attention(block, self._normed(x, block.attention_norm), view)
        x = block.out.plus(mixed, x)
        return block.feed_forward(self._normed(x, block.output_norm), x)

    def _attention(self, block: _Block, x: torch.Tensor, view: _View) -> torch.Tensor:
        """Return self-attention (tokens, hidden) within each text, computed together for all texts of one length."""
        import torch

        shared = block.query.input(x)
        query, key, value = block.query(shared), block.key(shared), block.value(shared)
        if view.angles is not None:
            query, key = _turned(query, *view.angles), _turned(key, *view.angles)
        parts = []
        end = 0
        for count, tokens, mask in view.windows:
            start, end = end, end + count * tokens
            q, k, v = (part[start:end].view(count, tokens, -1) for part in (query, key, value))
            parts.append(_attend(q, k, v, self._heads, mask).view(end - start, -1))
        if end < len(query):
            parts.append(query[end:])  # Rows that only fill the batch belong to no text and are never read.
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _windows(self, batch: Packed, reach: int | None) -> Iterator[_Window]:
        """Yield the windows of attention in the order of the batch.

        Several short texts share one window under a mask. torch's kernel computes an incomplete row of 16 keys one
        number at a time, so 12 keys take more than twice the time of 16 keys. If two or more short texts share 32 keys
        and are masked from each other, they take even less time.
        """
        for count, length in batch.runs:
            texts = min(count, _WINDOW // length) if length <= _LANES else 1
            for windows, together in ((count // texts, texts), (1, count % texts)):
                if windows and together:
                    yield windows, together * length, self._mask(together * length, length, reach)

    def _mask(self, tokens: int, length: int, reach: int | None) -> torch.Tensor | None:
        """Return what is added to the attention scores of texts of one length, as `_attend` takes it.

        It is minus infinity for keys of other texts, keys out of reach, and keys that fill a row of 16.
        """
        import torch

        span = _BLOCK + 2 * (-(-(reach or 0) // 8) * 8)
        if reach is not None and 2 * length > 3 * span:
            place = torch.arange(-(-length // _BLOCK) * _BLOCK).view(-1, 1, _BLOCK, 1)
            key = place[:, :, :1] - (span - _BLOCK) // 2 + torch.arange(span)
            masked = ((key - place).abs() > reach) | (key < 0) | (key >= length)
            return torch.zeros(masked.shape, dtype=self.dtype).masked_fill_(masked, float("-inf"))
        room = -tokens % _LANES
        near = reach is None or length <= reach + 1
        if self._relative_bias is None and near and tokens == length and (not room or length > _LONG):
            return None
        text = torch.arange(tokens + room) // length
        text[tokens:] = -1
        place = torch.arange(tokens + room) % length
        masked = text[:tokens, None] != text
        if reach is not None:
            masked |= (place - place[:tokens, None]).abs() > reach
        if self._relative_bias is None:
            mask = torch.zeros(masked.shape, dtype=self.dtype)
        else:  # Row i holds the biases of the distances -i, -i + 1, ...
            first = self.positions + _WINDOW - tokens
            rows = self._relative_bias[:, first:].unfold(1, tokens + room, 1)[:, :tokens]
            mask = rows.flip(1)[None]
        return mask.masked_fill_(masked, float("-inf"))

    def _angles(self, theta: float | None, where: torch.Tensor) -> _Angles | None:
        """Return the rotary angles of tokens by their places (tokens,) in their texts (Su et al., RoFormer, 2021)."""
        import torch

        if theta is None:
            return None
        size = self.hidden // self._heads
        speeds = 1.0 / (theta ** (torch.arange(0, size, 2, dtype=torch.float32) / size))
        angles = torch.outer(torch.arange(int(where.max()) + 1, dtype=torch.float32), speeds)
        cosines, sines = (part.to(self.dtype)[where][:, None] for part in (angles.cos(), angles.sin()))
        return torch.cat([cosines, cosines], dim=-1), sines


class _View(NamedTuple):
    """The windows and rotary angles of a batch, which all layers of one reach share.

    Attributes:
        windows: windows of attention that follow each other: how many, tokens of one, and what is added to the scores.
        angles: cosines (tokens, 1, size of a head) and sines (tokens, 1, half of it) of rotary positions.
    """

    windows: Sequence[_Window]
    angles: _Angles | None


def _turned(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Return queries or keys (tokens, hidden) turned by rotary angles."""
    half = sines.shape[-1]
    heads = x.view(len(x), -1, 2 * half)
    turned = heads * cosines
    turned[..., :half].addcmul_(heads[..., half:], sines, value=-1)
    turned[..., half:].addcmul_(heads[..., :half], sines)
    return turned.view(x.shape)


def _buckets(positions: int) -> torch.Tensor:
    """Return MPNet's bucket (2 x positions - 1,) of each distance between two tokens, by distance + positions - 1."""
    import torch

    back = torch.arange(positions - 1, -positions, -1)
    far = back.abs()
    logarithmic = 8 + (torch.log(far.float().clamp(min=1) / 8) / math.log(128 / 8) * 8).long()
    return (back < 0) * 16 + torch.where(far < 8, far, logarithmic.clamp(max=15))


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, heads: int, mask: torch.Tensor | None
) -> torch.Tensor:
    """Return attention within windows (windows, tokens, hidden).

    Args:
        mask: (tokens, keys), where the last keys may be padding; (1, heads, tokens, keys) if each head has its own; or
            (blocks, 1, tokens of a block, keys around the block) for attention to near tokens alone.
    """
    import torch
    import torch.nn.functional as F

    windows, tokens, hidden = query.shape
    if mask is None or mask.shape[-2] == tokens:
        if mask is not None and (room := mask.shape[-1] - tokens):
            key, value = (F.pad(part, (0, 0, 0, room)) for part in (key, value))
        q, k, v = (part.view(windows, part.shape[1], heads, -1).transpose(1, 2) for part in (query, key, value))
        if mask is None or mask.dim() == 2 or tokens <= _BLOCK:
            # The kernel writes in the order (text, token, head), so that the transposition back needs no copy.
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(query.shape)
        # With biases torch's kernel takes 1.5 times as long as these three operations, text by text in the cache.
        scale = q.shape[-1] ** -0.5
        scores = (torch.baddbmm(mask[0], one, other.mT, alpha=scale) for one, other in zip(q, k, strict=True))
        mixed = [torch.bmm(score.softmax(-1), other).transpose(0, 1) for score, other in zip(scores, v, strict=True)]
        return torch.stack(mixed).view(query.shape)
    blocks, _, block, span = mask.shape
    room, around = blocks * block - tokens, (span - block) // 2
    q = F.pad(query, (0, 0, 0, room)).view(windows, blocks, block, heads, -1).transpose(2, 3)
    k, v = (F.pad(part, (0, 0, around, room + around)).unfold(1, span, block) for part in (key, value))
    k, v = (part.view(windows, blocks, heads, -1, span).mT for part in (k, v))
    parts = [F.scaled_dot_product_attention(*one, attn_mask=mask) for one in zip(q, k, v, strict=True)]
    return torch.stack([part.transpose(1, 2).reshape(-1, hidden)[:tokens] for part in parts])


def _rows(tokens: int) -> int:
    """Return the number of rows to which a batch of this many tokens is padded.

    oneDNN compiles a kernel for each number of rows. With AMX that takes 27 ms and the product 3 ms; on an AMD EPYC
    without AMX it takes 1 to 6 ms and the product of a base model 36 ms.
    """
    step = 128 if "amx_bf16" in cpu_features().split() else 32
    return next((rows for rows in (16, 32, 64, 128) if tokens <= rows), -(-tokens // step) * step)


class _Linear:
    """A linear layer. In bfloat16 it uses oneDNN, with the weight packed once and the next operation fused in.

    With AMX this is 1.5 to 2 times as fast as F.linear, which packs the weight in every call. Query, key and value are
    three products. One fused product is not faster, and attention reads its output more slowly.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        import torch

        self.width, self._weight, self._bias = len(weight), weight, bias
        self._packed = None
        ops = torch.ops.mkldnn
        if weight.dtype == torch.bfloat16 and hasattr(ops, "_reorder_linear_weight") and _packs_bfloat16():
            self._packed = ops._reorder_linear_weight(weight.contiguous(), _ROWS)
            self._weight = weight[:0]

    def input(self, x: torch.Tensor) -> _Input:
        """Return the input of several layers as the layers take it."""
        return x

    def _product(self, x: Any) -> torch.Tensor:
        import torch.nn.functional as F

        return F.linear(x, self._weight, self._bias)

    def __call__(self, x: _Input, activation: tuple[str, str] = ("none", "")) -> torch.Tensor:
        """Return the product, or an activation of `_ACTIVATIONS` of it."""
        import torch
        import torch.nn.functional as F

        out: torch.Tensor
        if self._packed is not None:
            fused = torch.ops.mkldnn._linear_pointwise
            out = fused(x, self._packed, self._bias, activation[0], [], activation[1])
            return out
        out = self._product(x)
        if activation[0] == "gelu":
            torch.ops.aten.gelu_(out, approximate=activation[1])
        return F.silu(out, inplace=True) if activation[0] == "swish" else out

    def plus(self, x: _Input, residual: torch.Tensor, operation: str = "add") -> torch.Tensor:
        """Return the sum of the product and `residual`, or the product of both with `mul`."""
        import torch

        if self._packed is None:
            product = self._product(x)
            return product.add_(residual) if operation == "add" else product.mul_(residual)
        fused = torch.ops.mkldnn._linear_pointwise.binary
        out: torch.Tensor = fused(x, residual, self._packed, self._bias, operation)
        return out


class _EightBitLinear(_Linear):
    """A linear layer on products of 8-bit integers, with a scale for each row of the input and of the weight.

    Weights have 7 bits: without VNNI, two products are summed in 16 bits, which 255 x 63 x 2 does not exceed. A row has
    its own scale so that the vector of a text does not depend on the texts beside it.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        import torch

        self.width, self._packed, self._bias = len(weight), None, bias
        self._scales = weight.abs().amax(1).clamp_(min=_SMALLEST) / 63
        self._zeros = torch.zeros(len(weight), dtype=torch.int32)
        rounded = (weight / self._scales[:, None]).round_().to(torch.int8)
        try:
            self._weight = torch.ops.onednn.qlinear_prepack(rounded, None)
        except (AttributeError, RuntimeError) as error:
            raise ModelError(
                f"torch does not compute in int8 on this machine ({error}): leave precision out"
            ) from error

    def input(self, x: torch.Tensor) -> _Input:
        """Return the rows as 8-bit integers around 128, and the maximum of each row (rows, 1)."""
        import torch

        most = torch.maximum(x.amax(1, True), -x.amin(1, True)).clamp_(min=_SMALLEST)
        return (x * (127 / most)).add_(128.5).to(torch.uint8), most

    def _product(self, x: _Input) -> torch.Tensor:
        import torch

        rows, most = x if isinstance(x, tuple) else self.input(x)
        out: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
            *(rows, 1 / 127, 128, self._weight, self._scales, self._zeros, None, 1.0, 0, torch.float32, "none", [], "")
        )
        out.mul_(most)
        return out if self._bias is None else out.add_(self._bias)


_SMALLEST = 1e-30
"""The scale of a row of zeros."""


def _packs_bfloat16() -> bool:
    """Return whether oneDNN packs bfloat16 on this CPU. It needs AVX-512; torch's own products do not."""
    import torch

    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class _FeedForward:
    """A feed-forward layer: two products with the activation between, which a third may multiply, plus the residual."""

    def __init__(
        self, up: _Linear, down: _Linear, activation: tuple[str, str], multiplier: _Linear | None = None
    ) -> None:
        self._up, self._down, self._activation, self._multiplier = up, down, activation, multiplier

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        shared = self._up.input(x)
        inner = self._up(shared, self._activation)
        if self._multiplier is not None:
            inner = self._multiplier.plus(shared, inner, "mul")
        return self._down.plus(inner, residual)


class _Block:
    """The weights of one transformer layer."""

    def __init__(
        self, take: _Take, names: _Architecture, number: int, activation: tuple[str, str], kind: type[_Linear]
    ) -> None:
        def linear(name: str, biased: bool = names.biased[0]) -> _Linear:
            name, colon, part = f"{names.block}{number}.{name}".partition(":")
            bias = take(f"{name}.bias{colon}{part}") if biased else None
            return kind(take(f"{name}.weight{colon}{part}"), bias)

        gated = len(names.feed_forward) > 2
        self.query, self.key, self.value, self.out = map(linear, names.attention)
        first = linear(names.feed_forward[0], names.biased[0] and not gated)
        multiplier = linear(names.feed_forward[2], False) if gated else None
        self.feed_forward = _FeedForward(first, linear(names.feed_forward[1]), activation, multiplier)
        # ModernBERT norms its embeddings, and so not the input of its first layer.
        once = names.final_norm and not number
        start = f"{names.block}{number}."
        self.attention_norm = None if once else _norm(take, names, start + names.norms[0])
        self.output_norm = _norm(take, names, start + names.norms[1])


_Input = Union["torch.Tensor", "tuple[torch.Tensor, torch.Tensor]"]
_Take = Callable[[str], "torch.Tensor"]
_Norm = tuple["torch.Tensor", "torch.Tensor | None"]
_Window = tuple[int, int, "torch.Tensor | None"]
_Angles = tuple["torch.Tensor", "torch.Tensor"]


def _norm(take: _Take, names: _Architecture, name: str) -> _Norm | None:
    """Return a norm's weight and bias; None for an empty name."""
    if not name:
        return None
    return take(f"{name}.weight"), take(f"{name}.bias") if names.biased[1] else None
