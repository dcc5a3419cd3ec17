"""Centring and whitening: what they do to a covariance, and that their parameters stay as fitted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hardware import BFLOAT16, FLOAT32

from indexer.encoders import encode_many, fit_post, load_encoder
from indexer.encoders.recipes.postprocessing import PostProcessed, with_post
from indexer.errors import ModelError

ENCODER = "all-MiniLM-L6-v2"


def cone(rows: int, width: int = 384) -> np.ndarray:
    """Unit rows about a common direction, of unequal spread: raw BERT's shape."""
    random = np.random.default_rng(3)
    vectors = random.normal(size=(rows, width)) * np.linspace(1, 0.1, width) + 2
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_centring_takes_the_mean_away() -> None:
    vectors = cone(500)
    fitted = fit_post(load_encoder(ENCODER), vectors, "center")
    moved = vectors - vectors.mean(0)
    wanted = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    assert np.abs(fitted.apply(vectors) - wanted).max() < FLOAT32
    pairs = vectors @ vectors.T
    assert pairs[np.triu_indices(500, 1)].mean() > 0.8
    apart = fitted.apply(vectors) @ fitted.apply(vectors).T
    assert abs(apart[np.triu_indices(500, 1)].mean()) < 0.01


def test_whitening_makes_the_covariance_the_identity() -> None:
    vectors = cone(4000)
    fitted = fit_post(load_encoder(ENCODER), vectors, "whiten", dimensions=64)
    assert fitted.matrix is not None
    white = (vectors - fitted.mean) @ fitted.matrix
    assert white.shape == (4000, 64)
    assert np.abs(white.T @ white / 4000 - np.eye(64)).max() < 1e-3
    assert fitted.dimensions == fitted.recipe.dimensions == 64
    assert np.allclose(np.linalg.norm(fitted.apply(vectors), axis=1), 1, atol=1e-6)


def test_parameters_are_frozen_hashed_and_loaded_again() -> None:
    encoder = load_encoder(ENCODER)
    fitted = fit_post(encoder, cone(1000), "whiten", dimensions=100)
    parameters = fitted.fitted_parameters
    assert parameters is not None
    again = with_post(encoder, fitted.recipe, parameters)
    assert again.recipe == fitted.recipe
    vector = encoder.encode(["a bank"])
    assert np.array_equal(again.apply(vector), fitted.apply(vector))
    assert not fitted.recipe.same(fit_post(encoder, cone(1001), "whiten", dimensions=100).recipe)
    other = fit_post(encoder, cone(1001), "whiten", dimensions=100).fitted_parameters
    with pytest.raises(ModelError, match="do not match the recipe"):
        with_post(encoder, fitted.recipe, other or b"")


def test_too_few_or_too_like_samples_are_refused() -> None:
    encoder = load_encoder(ENCODER)
    with pytest.raises(ModelError, match="at least 100 passages"):
        fit_post(encoder, cone(99), "center")
    with pytest.raises(ModelError, match="at least 768 passages"):
        fit_post(encoder, cone(767), "whiten")
    flat = np.tile(cone(100), (10, 1))
    with pytest.raises(ModelError, match="vary in 99 directions only"):
        fit_post(encoder, flat, "whiten")


def test_post_processed_encoders_share_the_forward_pass() -> None:
    encoder = load_encoder(ENCODER)
    fitted = fit_post(encoder, cone(800), "center")
    plain, centred = encode_many([encoder, fitted], ["one text", "and another"])
    assert np.abs(plain - encoder.encode(["one text", "and another"])).max() < BFLOAT16
    assert np.array_equal(centred, fitted.apply(plain))


def test_a_vector_on_the_mean_is_an_error() -> None:
    encoder = load_encoder(ENCODER)
    vector = encoder.encode(["here"])
    post = dataclasses.replace(encoder.recipe, post="center")
    with pytest.raises(ModelError, match="leaves nothing"):
        PostProcessed(post, encoder, vector[0], None).apply(vector)
