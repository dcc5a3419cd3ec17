"""Any transformer through transformers' AutoModel, on any device: padded batches inside, packed states outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.encoders.recipes.locate import read_json
from indexer.encoders.torch.pooling import Packed
from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch


class AutoModel:
    """A `Transformer` that the transformers library loads and computes."""

    def __init__(self, folder: Path, dtype: torch.dtype, device: str, trust_remote_code: bool) -> None:
        import transformers

        # Only the encoder of an encoder-decoder such as T5 is loaded, as in sentence-transformers.
        settings = read_json(folder / "config.json", {})
        is_encoder = any(name.endswith("EncoderModel") for name in settings.get("architectures") or ())
        encoder_only = is_encoder or settings.get("is_encoder_decoder")
        auto: Any = transformers.AutoModelForTextEncoding if encoder_only else transformers.AutoModel
        try:
            with quiet():
                model, report = auto.from_pretrained(
                    folder,
                    dtype=dtype,
                    trust_remote_code=trust_remote_code,
                    output_loading_info=True,
                    local_files_only=True,
                )
        except Exception as error:
            raise ModelError(f"model {folder} cannot be loaded: {one_line(error)}") from error
        missing = {name for name in report["missing_keys"] if not name.startswith("pooler.")}
        if missing:
            raise ModelError(
                f"model {folder} lacks {len(missing)} of its weights ({min(missing)}, ...): fetch it again"
            )
        self._folder = folder
        self._model: Any = model.eval().to(device)
        config = model.config
        self.layers: int = config.num_hidden_layers
        self.hidden: int = config.hidden_size
        self.dtype = dtype
        bound = int(getattr(config, "max_position_embeddings", 0) or 0)
        self.positions = bound if bound > 0 else 2**20
        self._pad: int = getattr(config, "pad_token_id", 0) or 0
        if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
            self.positions -= self._pad + 1
        # transformers fills a pooler that the checkpoint lacks with random numbers.
        untrained = any(name.startswith("pooler.") for name in report["missing_keys"])
        self._pooler = None if untrained else getattr(model, "pooler", None)

    def states(self, batch: Packed, wanted: Sequence[int]) -> dict[int, torch.Tensor]:
        """Return hidden states (tokens, hidden) by layer, 0 is the embedding layer, packed like the batch."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        device = self._model.device
        lengths = [length for count, length in batch.runs for _ in range(count)]
        ids = pad_sequence(list(torch.split(batch.ids, lengths)), batch_first=True, padding_value=self._pad).to(device)
        mask = torch.arange(ids.shape[1], device=device) < torch.tensor(lengths, device=device)[:, None]
        inner = any(layer < self.layers for layer in wanted)  # Keeping the states of all layers takes memory.
        try:
            out = self._model(input_ids=ids, attention_mask=mask.long(), output_hidden_states=inner, return_dict=True)
        except (TypeError, ValueError) as error:
            raise ModelError(f"model {self._folder} does not run as an encoder: {one_line(error)}") from error
        return {
            layer: (out.hidden_states[layer] if layer < self.layers else out.last_hidden_state)[mask]
            for layer in wanted
        }

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


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the progress bars and messages of transformers while a model is loaded. Failures are still raised."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def one_line(error: Exception) -> str:
    """Return a library's error message on one line, in at most 200 characters."""
    return " ".join(str(error).split())[:200]
