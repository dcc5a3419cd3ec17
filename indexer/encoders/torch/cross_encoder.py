"""Cross-encoders: they read question and passage together and give one score. Loaded by sentence-transformers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from indexer.encoders.hardware import choose_device
from indexer.encoders.locate import find_model, read_json
from indexer.encoders.torch.automodel import one_line, quiet
from indexer.errors import ModelError

Scorer = Callable[[str, Sequence[str]], Sequence[float]]
"""Scores of texts for a question, one each, higher is better: any callable will do."""

_loaded: dict[tuple[str, str], Scorer] = {}
_lock = threading.Lock()


def cross_encoder(model: str, *, device: str = "auto", trust_remote_code: bool = False) -> Scorer:
    """Load a cross-encoder by name or folder; loaded once in a process.

    Raises:
        ModelError: it is not to be found or loaded, or gives more than one score a pair.
    """
    with _lock:
        key = model, device
        if key not in _loaded:
            _loaded[key] = _load(model, device, trust_remote_code)
        return _loaded[key]


def _load(model: str, device: str, trust_remote_code: bool) -> Scorer:
    folder = find_model(model)
    if not _scores_pairs(folder):  # sentence-transformers would give it a head of random numbers
        raise ModelError(
            f"reranker {model!r} is no cross-encoder, as it has no head that scores pairs: name one, such as "
            "cross-encoder/ms-marco-MiniLM-L6-v2"
        )
    from sentence_transformers import CrossEncoder

    try:
        with quiet():
            loaded = CrossEncoder(
                str(folder),
                device=choose_device(device),
                trust_remote_code=trust_remote_code,
                local_files_only=True,
            )
    except Exception as error:
        raise ModelError(f"reranker {model!r} cannot be loaded as a cross-encoder: {one_line(error)}") from error
    if loaded.num_labels != 1:
        raise ModelError(
            f"reranker {model!r} gives {loaded.num_labels} scores a pair, and ranking needs one: name another"
        )

    def score(query: str, texts: Sequence[str]) -> Sequence[float]:
        pairs = [(query, text) for text in texts]
        found: list[float] = loaded.predict(pairs, show_progress_bar=False).tolist()
        return found

    return score


def _scores_pairs(folder: Path) -> bool:
    """Whether a model's files say that it was trained to score pairs, as classifiers and language models can."""
    own = read_json(folder / "config_sentence_transformers.json", {}).get("model_type")
    architectures = read_json(folder / "config.json", {}).get("architectures") or []
    return own == "CrossEncoder" or any(name.endswith(("Classification", "ForCausalLM")) for name in architectures)
