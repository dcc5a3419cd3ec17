"""Cross-encoders on a CPU whose hidden states native.py computes, without padding. Their head stays as it is."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.encoders.torch.encoder import CPU_BATCH_TOKENS, run_in_batches
from indexer.encoders.torch.pooling import Packed
from likewise.speed import native

if TYPE_CHECKING:
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling


def compute_natively(model: Any, dtype: torch.dtype) -> None:
    """Let native.py compute the hidden states of a CrossEncoder, if it can; the head stays as it is, in float32."""
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    classifier = model.model
    folder = Path(classifier.name_or_path)
    if (
        not type(classifier).__name__.endswith("ForSequenceClassification")
        or model.tokenizer.padding_side != "right"
        or (folder / "adapter_config.json").exists()
        or native.settings(folder) is None
    ):
        return
    transformer, body = native.Native(folder, dtype), classifier.base_model
    pooler = getattr(body, "pooler", None)
    for name in [name for name, _ in body.named_children() if name != "pooler"]:
        setattr(body, name, None)  # This frees weights that are in memory twice until here.

    def forward(
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        **_: Any,
    ) -> BaseModelOutputWithPooling:
        import torch

        real = torch.ones_like(input_ids).bool() if attention_mask is None else attention_mask.bool()
        rows = [range(length) for length in real.sum(1).tolist()]
        states = torch.zeros(*input_ids.shape, transformer.hidden)

        def run(order: list[int]) -> None:
            runs = [(len(list(same)), length) for length, same in groupby(len(rows[text]) for text in order)]
            with torch.inference_mode():
                number, place = real[order].nonzero(as_tuple=True)
                text = torch.tensor(order)[number]
                segments = None if token_type_ids is None else token_type_ids[text, place]
                batch = Packed(input_ids[text, place], runs, segments)
                states[text, place] = transformer.states(batch, [transformer.layers])[transformer.layers].float()

        run_in_batches(run, rows, CPU_BATCH_TOKENS, "cpu")
        return BaseModelOutputWithPooling(states, None if pooler is None else pooler(states))

    body.forward = forward
    classifier.float()
