"""Any transformer through transformers' AutoModel, on any device: padded batches inside, packed states outside."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.encoders.recipes.locate import read_json
from indexer.encoders.torch.pooling import Packed
from indexer.errors import Message, ModelError

if TYPE_CHECKING:
    import torch

_FROM_PADDING = (
    *("roberta", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm", "camembert", "mpnet"),
    *("data2vec-text", "esm", "ibert", "longformer", "xmod"),
)
"""Architectures that number positions from the padding id + 1, so that they read fewer tokens than positions."""


def from_padding(config: Mapping[str, Any]) -> int:
    """Return how many positions of a model no token has, because it numbers them from the padding id + 1."""
    pad = config.get("pad_token_id")
    return (1 if pad is None else int(pad)) + 1 if config.get("model_type") in _FROM_PADDING else 0


MAX_POSITIONS = 2**20
"""Tokens that a model reads whose configuration names no number, or an absurd one."""

_printing = threading.RLock()
_READ_PADDING = ("convbert", "fnet", "funnel", "mobilebert", "mra", "nystromformer")
"""Architectures whose vectors depend on padding: their convolutions, Fourier transforms or blocks reach into it."""


class AutoModel:
    """A `Transformer` that the transformers library loads and computes."""

    def __init__(self, folder: Path, dtype: torch.dtype, device: str, trust_remote_code: bool) -> None:
        model, missing = load_transformer(folder, dtype, trust_remote_code=trust_remote_code)
        self._folder = folder
        self._model: Any = model.to(device)
        config = model.config
        self.layers: int = config.num_hidden_layers
        self.hidden: int = config.hidden_size
        self.dtype = dtype
        bound = int(getattr(config, "max_position_embeddings", 0) or 0)
        self.positions = min(bound, MAX_POSITIONS) if bound > 0 else MAX_POSITIONS
        self._pad: int = getattr(config, "pad_token_id", 0) or 0
        self.positions -= from_padding(config.to_dict())
        # transformers fills a pooler that the checkpoint lacks with random numbers.
        self._pooler = None if missing else getattr(model, "pooler", None)

    def states(self, batch: Packed, wanted: Sequence[int]) -> dict[int, torch.Tensor]:
        """Return hidden states (tokens, hidden) by layer, 0 is the embedding layer, packed like the batch."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        device = self._model.device
        if self._model.config.model_type in _READ_PADDING and len(batch.runs) > 1:
            return self._unpadded(batch, wanted)
        lengths = [length for count, length in batch.runs for _ in range(count)]

        def padded(packed: torch.Tensor, padding: int) -> torch.Tensor:
            rows = list(torch.split(packed, lengths))
            return pad_sequence(rows, batch_first=True, padding_value=padding).to(device)

        ids = padded(batch.ids, self._pad)
        segments = {} if batch.segments is None else {"token_type_ids": padded(batch.segments, 0)}
        mask = torch.arange(ids.shape[1], device=device) < torch.tensor(lengths, device=device)[:, None]
        inner = any(layer < self.layers for layer in wanted)  # Keeping the states of all layers takes memory.
        try:
            out = self._model(ids, attention_mask=mask.long(), output_hidden_states=inner, return_dict=True, **segments)
        except RuntimeError as error:
            if self.dtype == torch.float32 or isinstance(error, torch.OutOfMemoryError):
                raise
            raise ModelError(f"model {self._folder} does not run in {self.dtype}: choose float32, or auto") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelError(
                f"model {self._folder} ({self._model.config.model_type}) does not run as an encoder of texts: name a "
                "model that reads nothing but text"
            ) from error
        return {
            layer: (out.hidden_states[layer] if layer < self.layers else out.last_hidden_state)[mask]
            for layer in wanted
        }

    def _unpadded(self, batch: Packed, wanted: Sequence[int]) -> dict[int, torch.Tensor]:
        """Return the states of a batch whose texts of one length are computed together, so that nothing is padded."""
        import torch

        sizes = [count * length for count, length in batch.runs]
        segments = repeat(None) if batch.segments is None else torch.split(batch.segments, sizes)
        parts = [
            self.states(Packed(ids, [run], kinds), wanted)
            for ids, run, kinds in zip(torch.split(batch.ids, sizes), batch.runs, segments, strict=False)
        ]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in wanted}

    def pooler(self, first: torch.Tensor) -> torch.Tensor | None:
        """Apply the checkpoint's pooler to the last layer's first tokens (texts, hidden); None if it has no pooler."""
        import torch

        if self._pooler is None:
            return None
        first = first.to(self._model.device, self.dtype)
        # ALBERT and BigBird have the pooler's activation as a separate member.
        if isinstance(self._pooler, torch.nn.Linear):
            activation = getattr(self._model, "pooler_activation", None) or self._model.activation
            pooled: torch.Tensor = activation(self._pooler(first))
        else:
            pooled = self._pooler(first[:, None])
        return pooled


def load_transformer(folder: Path, dtype: torch.dtype, *, trust_remote_code: bool) -> tuple[Any, bool]:
    """Load a model with transformers.

    Returns:
        The model, and whether its pooler is missing from the files and holds random numbers.

    Raises:
        ModelError: the model cannot be loaded, or weights are missing.
    """
    import transformers

    # Only the encoder of an encoder-decoder such as T5 is loaded, as in sentence-transformers.
    settings = read_json(folder / "config.json", {})
    is_encoder = any(name.endswith("EncoderModel") for name in settings.get("architectures") or ())
    encoder_only = is_encoder or settings.get("is_encoder_decoder")
    auto: Any = transformers.AutoModelForTextEncoding if encoder_only else transformers.AutoModel
    try:
        with quiet(own_code=trust_remote_code):
            model, report = auto.from_pretrained(
                folder,
                dtype=dtype,
                trust_remote_code=trust_remote_code,
                output_loading_info=True,
                local_files_only=True,
            )
    except Exception as error:
        raise cannot_load(str(folder), folder, error) from error
    poolers = [name for name in report["missing_keys"] if name.startswith("pooler.")]
    missing = set(report["missing_keys"]) - set(poolers)
    if missing:
        raise ModelError(f"model {folder} lacks {len(missing)} of its weights ({min(missing)}, ...): fetch it again")
    model.config.use_cache = False  # A language model would keep keys and values for a next token.
    return model.eval(), bool(poolers)


@contextmanager
def quiet(*, own_code: bool = False) -> Iterator[None]:
    """Silence the progress bars and messages of transformers while a model is loaded. Failures are still raised.

    Args:
        own_code: whether the model may bring code. What that prints goes to standard error, because a command's
            standard output may be JSON.
    """
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        # Two threads would put each other's output back.
        with _printing if own_code else nullcontext(), redirect_stdout(sys.stderr) if own_code else nullcontext():
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def cannot_load(name: str, folder: Path, error: Exception) -> ModelError:
    """Return the error for a model that transformers cannot load: the reason and the way out, in our own words.

    Args:
        name: the model as the message names it.
        folder: of the transformer, with its config.json.
        error: of the library. It stays the cause of the error, and its text is not repeated.
    """
    import transformers

    config = read_json(folder / "config.json", {})
    kind, version = config.get("model_type"), transformers.__version__
    known = kind in transformers.CONFIG_MAPPING
    if isinstance(error, ImportError):
        packages = re.search(r"environment: ([\w\-, ]+)", str(error))
        missing = error.name or (packages[1] if packages else "that its code names")
        return ModelError(f"model {name} cannot be loaded: it needs the package {missing}, which is not installed")
    if "trust_remote_code" in str(error) or (config.get("auto_map") and not known):
        return ModelError(
            Message(
                f"model {name} cannot be loaded: it brings Python code of its own, which runs only if you trust its "
                "author (trust_remote_code)",
                ": add --trust-remote-code",
            )
        )
    if kind is None:
        return ModelError(f"model {name} cannot be loaded: its config.json names no architecture; fetch it again")
    if not known:
        return ModelError(
            f"model {name} cannot be loaded: transformers {version} does not know its architecture {kind!r}; update "
            "transformers"
        )
    return ModelError(
        f"model {name} cannot be loaded: transformers {version} cannot read its files as {kind!r}; fetch it again, or "
        "name a model that encodes texts"
    )
