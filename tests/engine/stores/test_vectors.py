"""Vectors as they are stored: their length, what rounding costs, and the checksum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from indexer.errors import BadInput, IndexDamaged
from indexer.stores.vectors import checksum, from_blobs, stored_rows, to_blobs, to_float32, unit_rows


def _random(count: int, dimensions: int) -> np.ndarray:
    rows = np.random.default_rng(dimensions).normal(size=(count, dimensions))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.mark.parametrize("dimensions", [64, 384, 768, 1024])
def test_a_stored_row_has_length_one_and_its_cosines_are_kept(dimensions: int) -> None:
    rows = _random(300, dimensions)
    stored = from_blobs(to_blobs(rows), dimensions)
    assert stored.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(stored.astype(np.float64), axis=1), 1, rtol=0, atol=2e-6)
    np.testing.assert_allclose(stored @ rows.T, rows @ rows.T, rtol=0, atol=1e-3)
    np.testing.assert_allclose(stored, rows, rtol=0, atol=5e-4)


def test_a_row_of_few_dimensions_is_stored_as_well_as_can_be() -> None:
    for row in (np.array([[1, 0]]), np.array([[0.6, 0.8]]), np.array([[1]]), np.array([[1e-7, 1]])):
        (blob,) = to_blobs(unit_rows(row.astype(np.float32), row.shape[1], ["a"]))
        np.testing.assert_allclose(np.frombuffer(blob, "<f2").astype(float), row[0] / np.linalg.norm(row), atol=1e-3)


@settings(max_examples=60, deadline=None)
@given(arrays(np.float32, (3, 5), elements=st.floats(-(2.0**99), 2.0**99, width=32)))
def test_any_finite_row_but_zero_gets_length_one(rows: np.ndarray) -> None:
    if not rows.any(axis=1).all():
        with pytest.raises(BadInput, match="only zeros"):
            unit_rows(rows, 5, ["a", "b", "c"])
        return
    unit = unit_rows(rows, 5, ["a", "b", "c"])
    np.testing.assert_allclose(np.linalg.norm(unit.astype(np.float64), axis=1), 1, atol=1e-6)


def test_what_is_no_row_is_refused_by_name() -> None:
    for rows, why in (
        (np.ones((1, 3)), r"shape \(1, 3\)"),
        (np.ones(2), r"shape \(2,\)"),
        (np.array([[np.inf, 1]]), "'a' has a value that is not finite"),
        (np.array([[1j, 1]]), "complex128"),
        (np.array([[True, False]]), "bool"),
    ):
        with pytest.raises(BadInput, match=why):
            unit_rows(rows, 2, ["a"])


def test_rows_that_left_a_store_come_back_bit_for_bit() -> None:
    stored = from_blobs(to_blobs(_random(50, 384)), 384)
    np.testing.assert_array_equal(stored_rows(stored, 384, ["a"] * 50), stored)
    assert to_blobs(stored_rows(stored, 384, ["a"] * 50)) == to_blobs(stored)


@pytest.mark.parametrize("blob", [b"", b"\0" * 9, b"\0" * 11, None, "text"])
def test_a_blob_of_another_length_is_damage(blob: object) -> None:
    with pytest.raises(IndexDamaged, match="stored vector is damaged"):
        from_blobs([b"\0" * 10, blob], 5)  # type: ignore[list-item]


def test_a_checksum_tells_of_every_bit_and_letter() -> None:
    text, blob = "a text, é", bytes(range(32))
    sound = checksum(text, blob)
    assert len(sound) == 8
    flipped = [blob[:i] + bytes([blob[i] ^ 1 << bit]) + blob[i + 1 :] for i in range(32) for bit in range(8)]
    assert [other for other in flipped if checksum(text, other) == sound] == []
    assert checksum("a text, è", blob) != sound


def test_every_finite_float16_becomes_the_float32_that_numpy_makes_of_it() -> None:
    every = np.arange(2**16, dtype="<u2").view("<f2")
    finite = every[np.isfinite(every)].reshape(2, -1)
    assert to_float32(finite).tobytes() == finite.astype("<f4").tobytes()
