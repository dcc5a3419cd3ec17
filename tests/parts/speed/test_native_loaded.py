"""Encoders that are loaded with native blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hardware import FLOAT32

from indexer.encoders import load, load_encoder
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.pooling import Packed
from likewise.speed import native


def test_bfloat16_runs_where_the_cpu_cannot_pack_it(
    tiny: Callable[[str], Path], sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = load_encoder(tiny("bert"), precision="float32").encode(sentences)
    monkeypatch.setattr(native, "_packs_bfloat16", lambda: False)
    load._transformer.cache_clear()  # one with packed weights may be kept there
    plain = load_encoder(tiny("bert"), precision="bfloat16")
    assert isinstance(plain, TorchEncoder)
    assert isinstance(plain.transformer, native.Native)
    assert plain.transformer.blocks[0].query._packed is None
    assert (exact * plain.encode(sentences)).sum(1).min() > 0.998  # .9990 to .9996, by the vocabulary that was trained
    load._transformer.cache_clear()


def test_batches_that_run_side_by_side_give_the_vectors_of_batches_in_a_row(
    tiny: Callable[[str], Path], sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(tiny("bert"), precision="float32")
    assert isinstance(encoder, TorchEncoder)
    monkeypatch.setattr(TorchEncoder, "batch_tokens", 30)
    texts = [f"{one} {other}" for one in sentences[:2] for other in sentences]
    seen: set[str] = set()
    states = native.Native.states

    def watched(self: native.Native, batch: Packed, wanted: Sequence[int]) -> dict[int, torch.Tensor]:
        seen.add(threading.current_thread().name.rpartition("_")[0])
        return states(self, batch, wanted)

    monkeypatch.setattr(native.Native, "states", watched)
    threads = torch.get_num_threads()
    found = {}
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            seen.clear()
            found[count] = encoder.encode(texts)
            assert seen == ({"encode"} if count == 2 else {""})
    finally:
        torch.set_num_threads(threads)
    assert np.abs(found[1] - found[2]).max() < FLOAT32
