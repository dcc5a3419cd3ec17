"""What a long run is told about embedding quicker: only what is true of the machine and the model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from indexer.encoders.machine.runtime import Runtime
from likewise.workers import named

STATIC = "a new index with --model minishlab/potion-base-4M, a static model that finds less"


def index_on(device: str | None, model: str, named_device: str, precision: Any = "auto") -> Any:
    encoder = SimpleNamespace(recipe=SimpleNamespace(model=model), device=device)
    if device is None:  # as a static model, or one behind an endpoint
        del encoder.device
    return SimpleNamespace(
        encoder=encoder, window=lambda: 1, context=SimpleNamespace(runtime=Runtime(precision, named_device))
    )


@pytest.mark.parametrize(
    ("device", "model", "gpus", "threads", "text"),
    [
        ("cpu", "all-MiniLM-L6-v2", [], None, f"quicker: a computer with a GPU, or {STATIC}"),
        ("cpu", "multilingual-e5-small", [], 8, "quicker: a computer with a GPU"),
        ("cpu", "x", [], 2, "quicker: a computer with a GPU, or all 8 cores (OMP_NUM_THREADS is 2)"),
        ("named cpu", "x", ["0"], None, "quicker: the GPU, without --device cpu"),
        ("cpu", "x", ["0"], None, "quicker: a computer with a GPU"),  # torch cannot use it
        ("cuda", "x", ["0"], None, ""),
        ("cuda", "x", ["0", "1"], None, "--workers 2 would use every GPU"),
        ("mps", "x", [], None, ""),
        (None, "x", [], None, ""),
    ],
)
def test_what_would_be_quicker(
    monkeypatch: pytest.MonkeyPatch, device: str | None, model: str, gpus: list[str], threads: int | None, text: str
) -> None:
    monkeypatch.setattr(named, "gpus", lambda: gpus)
    monkeypatch.setattr(named, "cores", lambda: 8)
    monkeypatch.setattr(named, "multiplies_bfloat16", lambda: True)
    monkeypatch.setattr(named, "named_threads", lambda: threads)
    is_named = device == "named cpu"
    index = index_on("cpu" if is_named else device, model, "cpu" if is_named else "auto")
    assert named.quicker(index) == text


@pytest.mark.parametrize(
    ("bfloat16", "precision", "is_said"), [(False, "auto", True), (True, "auto", False), (False, "int8", False)]
)
def test_int8_is_quicker_where_nothing_computes_in_bfloat16(
    monkeypatch: pytest.MonkeyPatch, bfloat16: bool, precision: str, is_said: bool
) -> None:
    monkeypatch.setattr(named, "multiplies_bfloat16", lambda: bfloat16)
    said = named.quicker(index_on("cpu", "all-MiniLM-L6-v2", "auto", precision))
    assert ("--precision int8, which finds nearly the same, or a new index" in said) == is_said
