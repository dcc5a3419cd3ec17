"""Post-processing of vectors: centring and whitening, fitted to passages once and then frozen.

Raw BERT's vectors lie in a narrow cone, where unrelated texts have high cosines. Centring subtracts the common mean
(Mu and Viswanath, All-but-the-Top, 2018); whitening also rotates and scales the axes until the covariance is the
identity (Su et al., Whitening Sentence Representations, 2021). Both methods take the unit rows of an encoder. Only the
leading dimensions of the result are kept (after whitening: the dimensions with the largest variance), and each row is
scaled to unit length. Numpy alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.recipes.port import Encoder, Role, Tokenizing, steady
from indexer.encoders.recipes.recipe import Post, Recipe
from indexer.errors import ModelError
from indexer.records import Vector

_MIN_SAMPLES = 100
"""Minimum vectors to fit a mean to. The error of the mean is then a tenth of the vectors' spread."""

_MIN_SAMPLES_PER_DIMENSION = 2
"""Minimum vectors per dimension for whitening. Whitening divides by the roots of the variances, and with fewer vectors
the smallest variances are noise."""


@dataclass(frozen=True, slots=True)
class PostProcessed(Tokenizing):
    """An `Encoder` that centres or whitens the vectors of `inner` with frozen parameters.

    Attributes:
        recipe: recipe of the post-processed vectors; its `dimensions` is the number of dimensions that are kept.
        inner: the encoder of the vectors before post-processing, which have d dimensions.
        mean: (d,), subtracted from each vector.
        matrix: (d, dimensions), by which the result is multiplied; None for centring.
    """

    recipe: Recipe
    inner: Encoder
    mean: Vector
    matrix: Vector | None

    def overhead(self, role: Role = "document") -> int:
        return self.inner.overhead(role)

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return self.inner.offsets(texts)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        return self.apply(self.inner.encode(texts, role, truncate))

    def apply(self, vectors: Vector) -> Vector:
        """Return the post-processed unit rows (n, dimensions) of unit rows (n, d) of `inner`.

        Raises:
            ModelError: a vector equals the fitted mean, so that centring makes it zero.
        """
        centred = vectors - self.mean
        rotated = centred if self.matrix is None else centred @ self.matrix
        out = rotated[:, : self.dimensions]
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        if not (norms > 0).all():
            raise ModelError(f"{self.recipe} leaves nothing of a vector: it is the mean of the fitted passages")
        return np.asarray(out / norms, np.float32)

    @property
    def fitted_parameters(self) -> bytes:
        """Mean and matrix in the safetensors format, as `with_post` reads them."""
        return _pack(self.mean, self.matrix)


def fit_post(encoder: Encoder, vectors: Vector, post: Post, dimensions: int | None = None) -> PostProcessed:
    """Fit post-processing to vectors of an encoder, and freeze it.

    Args:
        vectors: unit rows (n, d) of `encoder`.
        dimensions: number of dimensions of the result to keep; None keeps all.

    Raises:
        ModelError: there are too few rows (100 are needed, and for whitening twice the kept dimensions); the rows vary
            in fewer directions than are kept; or `dimensions` is more than d.
    """
    rows, width = vectors.shape
    kept = dimensions or width
    if kept > width:
        raise ModelError(f"{kept} dimensions of {width}: post-processing can only keep fewer")
    needed = max(_MIN_SAMPLES, _MIN_SAMPLES_PER_DIMENSION * kept if post == "whiten" else 0)
    if rows < needed:
        raise ModelError(
            f"{post} of {kept} dimensions needs at least {needed} passages to be fitted on and got {rows}: "
            "index more, keep fewer dimensions, or leave it out"
        )
    mean = vectors.mean(axis=0, dtype=np.float64)
    matrix = _whitening(vectors - mean, kept) if post == "whiten" else None
    packed = _pack(mean.astype(np.float32), matrix)
    return with_post(encoder, dataclasses.replace(encoder.recipe, post=post, dimensions=kept), packed)


def with_post(encoder: Encoder, recipe: Recipe, parameters: bytes) -> PostProcessed:
    """Return `encoder` with post-processing that was fitted before.

    Args:
        recipe: of the post-processed vectors.
        parameters: the value of `PostProcessed.fitted_parameters`.

    Raises:
        ModelError: the parameters differ from the sha256 in the recipe, or do not fit the encoder.
    """
    from safetensors.numpy import load

    digest = hashlib.sha256(parameters).hexdigest()
    if recipe.post_sha256 not in ("", digest):
        raise ModelError(
            f"the stored {recipe.post} parameters (sha256 {digest[:12]}...) do not match the recipe: rebuild the index"
        )
    arrays = load(parameters)
    if arrays["mean"].shape != (encoder.dimensions,):
        raise ModelError(
            f"the {recipe.post} parameters are for {arrays['mean'].size} dimensions, not {encoder.dimensions}"
        )
    recipe = dataclasses.replace(recipe, post_sha256=digest)
    # Whitening magnifies the small differences between two runtimes, so an index must not mix their vectors.
    return PostProcessed(recipe, steady(encoder), arrays["mean"], arrays.get("matrix"))


def _whitening(centred: NDArray[np.float64], kept: int) -> Vector:
    """Return the whitening matrix (d, kept) of centred rows (n, d).

    Its columns are the covariance's eigenvectors divided by the roots of their eigenvalues, largest variance first.
    """
    values, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    values, axes = values[::-1][:kept], axes[:, ::-1][:, :kept]
    varying = int((values > values[0] * 1e-7).sum())
    if varying < kept:
        raise ModelError(f"the passages vary in {varying} directions only: whiten to at most {varying} dimensions")
    return np.asarray(axes / np.sqrt(values), np.float32)


def _pack(mean: Vector, matrix: Vector | None) -> bytes:
    from safetensors.numpy import save

    return save({"mean": mean} if matrix is None else {"mean": mean, "matrix": np.ascontiguousarray(matrix)})
