"""Cross-encoders, which read question and passage together and return one score.

sentence-transformers loads them, reads pairs as tokens, and computes the head. On a CPU native.py computes the hidden
states that the head reads, if it can, without padding.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.encoders.machine.hardware import Precision, choose_device, choose_dtype
from indexer.encoders.recipes.locate import find_model, read_json
from indexer.encoders.torch import native
from indexer.encoders.torch.automodel import cannot_load, quiet
from indexer.encoders.torch.pooling import Packed
from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch

Scorer = Callable[[str, Sequence[str]], Sequence[float]]
"""Takes a question and texts, returns one score per text; higher is better."""


class CrossEncoderScorer:
    """A loaded cross-encoder.

    Attributes:
        gives_probabilities: whether its scores are within 0 and 1; otherwise they are logits.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.gives_probabilities = type(model.activation_fn).__name__ == "Sigmoid"

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        scores: list[float] = self._model.predict([(query, text) for text in texts], show_progress_bar=False).tolist()
        return scores


_lock = threading.Lock()


def cross_encoder(model: str, precision: Precision = "float32") -> CrossEncoderScorer:
    """Return the cross-encoder of a name or folder; a process loads it once.

    Args:
        precision: of the hidden states on a CPU; the head computes in float32. bfloat16 is about twice as fast,
            and changes the order of hits whose scores are close (docs/speed.md).

    Raises:
        ModelError: the model is not found, cannot be loaded, or gives more than one score per pair.
    """
    with _lock:
        return _load(model, precision)


@cache
def _load(model: str, precision: Precision) -> CrossEncoderScorer:
    folder = find_model(model, instead="leave the reranker out")
    if not _scores_pairs(folder):  # sentence-transformers would add a head of random numbers.
        raise ModelError(
            f"reranker {model!r} is not a cross-encoder, as it has no head that scores pairs: name one, such as "
            "cross-encoder/ms-marco-MiniLM-L6-v2"
        )
    from sentence_transformers import CrossEncoder

    try:
        with quiet():
            loaded = CrossEncoder(str(folder), device=choose_device("auto"), local_files_only=True)
    except Exception as error:
        reason = str(cannot_load(repr(model), folder, error)).partition("cannot be loaded: ")[2]
        raise ModelError(f"reranker {model!r} cannot be loaded as a cross-encoder: {reason}") from error
    if loaded.num_labels != 1:
        raise ModelError(
            f"reranker {model!r} gives {loaded.num_labels} scores per pair, and ranking needs one: name another"
        )
    if loaded.device.type == "cpu":
        compute_natively(loaded, choose_dtype(precision, "cpu"))
    return CrossEncoderScorer(loaded)


def compute_natively(model: Any, dtype: torch.dtype) -> None:
    """Let native.py compute the hidden states of a CrossEncoder, if it can; the head stays as it is, in float32."""
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    from indexer.encoders.torch.encoder import CPU_BATCH_TOKENS, run_in_batches

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


def _scores_pairs(folder: Path) -> bool:
    """Return whether a model's files say that it scores pairs, as classifiers and language models do."""
    kind = read_json(folder / "config_sentence_transformers.json", {}).get("model_type")
    architectures = read_json(folder / "config.json", {}).get("architectures") or []
    return kind == "CrossEncoder" or any(name.endswith(("Classification", "ForCausalLM")) for name in architectures)
