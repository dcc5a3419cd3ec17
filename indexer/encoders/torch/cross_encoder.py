"""Cross-encoders, which read question and passage together and return one score.

sentence-transformers loads them, reads pairs as tokens, and computes the head. On a CPU the part `speed` computes the
hidden states that the head reads, if it can.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from indexer.doors import find
from indexer.encoders.machine.hardware import Precision, choose_device, choose_dtype
from indexer.encoders.recipes.locate import find_model, read_json
from indexer.encoders.torch.automodel import cannot_load, quiet
from indexer.encoders.torch.quicker import Speed
from indexer.errors import ModelError

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
        precision: of the hidden states that the part `speed` computes on a CPU; the head computes in float32. bfloat16
            is about twice as fast, and changes the order of hits whose scores are close (docs/speed.md).

    Raises:
        ModelError: the model is not found, cannot be loaded, or gives more than one score per pair; or the precision
            is int8.
    """
    if precision == "int8":
        raise ModelError("a reranker does not compute in int8, which changes the order of hits: leave precision out")
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
    speed: Speed | None = find("parts", "speed")
    if speed is not None and loaded.device.type == "cpu":
        speed.quicken(loaded, choose_dtype(precision, "cpu"))
    return CrossEncoderScorer(loaded)


def _scores_pairs(folder: Path) -> bool:
    """Return whether a model's files say that it scores pairs, as classifiers and language models do."""
    kind = read_json(folder / "config_sentence_transformers.json", {}).get("model_type")
    architectures = read_json(folder / "config.json", {}).get("architectures") or []
    return kind == "CrossEncoder" or any(name.endswith(("Classification", "ForCausalLM")) for name in architectures)
