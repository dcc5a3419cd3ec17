"""Post-processing against the narrow cone of raw BERT's vectors: centring and whitening, fitted and frozen.

Centring subtracts the common mean (Mu and Viswanath, All-but-the-Top, 2018); whitening also turns and scales
the axes until the covariance is the identity (Su et al., Whitening Sentence Representations, 2021). Both act
on the unit rows of an encoder; the result is cut to the leading dimensions (for whitening: those of largest
variance) and scaled to unit length again. Numpy alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.port import Encoder, Role
from indexer.encoders.recipe import Post, Recipe
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import ModelError
from indexer.records import Vector

_SAMPLES_FOR_MEAN = 100  # the mean's error is then a tenth of the vectors' spread
_SAMPLES_A_DIMENSION = 2  # below this the smallest variances, which whitening divides by, are noise


@dataclass(frozen=True, slots=True)
class PostProcessed:
    """An `Encoder` whose vectors are those of `inner`, centred or whitened with frozen parameters."""

    recipe: Recipe
    inner: Encoder
    mean: Vector
    matrix: Vector | None

    @property
    def dimensions(self) -> int:
        return self.recipe.dimensions

    @property
    def max_tokens(self) -> int:
        return self.inner.max_tokens

    def overhead(self, role: Role = "document") -> int:
        return self.inner.overhead(role)

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return self.inner.offsets(texts)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        return self.apply(self.inner.encode(texts, role, truncate))

    def apply(self, vectors: Vector) -> Vector:
        """Unit rows of `inner` into this recipe's."""
        moved = vectors - self.mean
        turned = moved if self.matrix is None else moved @ self.matrix
        out = turned[:, : self.dimensions]
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        if not (norms > 0).all():
            raise ModelError(f"{self.recipe} leaves nothing of a vector: it lies on the mean of the fitted passages")
        return np.asarray(out / norms, np.float32)

    @property
    def fitted_parameters(self) -> bytes:
        """Mean and matrix in the safetensors format, as `with_post` reads them."""
        return _pack(self.mean, self.matrix)


def fit_post(encoder: Encoder, vectors: Vector, post: Post, dimensions: int | None = None) -> PostProcessed:
    """Fit on unit rows (n, d) of `encoder` and freeze; `dimensions` keeps only that many of the result.

    Raises:
        ModelError: too few rows (100 for center; twice the kept dimensions for whiten), rows that vary in
            fewer directions than are kept, or more dimensions than there are.
    """
    rows, width = vectors.shape
    kept = dimensions or width
    if kept > width:
        raise ModelError(f"{kept} dimensions of {width}: post-processing can only keep fewer")
    needed = max(_SAMPLES_FOR_MEAN, _SAMPLES_A_DIMENSION * kept if post == "whiten" else 0)
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
    """`encoder` with frozen parameters (`PostProcessed.fitted_parameters`). `recipe.post_sha256` is checked if set.

    Raises:
        ModelError: other parameters than the recipe names, or of another shape than the encoder.
    """
    from safetensors.numpy import load

    digest = hashlib.sha256(parameters).hexdigest()
    if recipe.post_sha256 not in ("", digest):
        raise ModelError(f"the {recipe.post} parameters are not those of the recipe (sha256 {digest[:12]}...)")
    found = load(parameters)
    if found["mean"].shape != (encoder.dimensions,):
        raise ModelError(
            f"the {recipe.post} parameters are for {found['mean'].size} dimensions, not {encoder.dimensions}"
        )
    recipe = dataclasses.replace(recipe, post_sha256=digest)
    if isinstance(encoder, TorchEncoder):
        # Whitening magnifies the small differences between two runtimes, and an index should not hold both.
        encoder = dataclasses.replace(encoder, alternative=None)
    return PostProcessed(recipe, encoder, found["mean"], found.get("matrix"))


def _whitening(moved: NDArray[np.float64], kept: int) -> Vector:
    """Eigenvectors of the covariance over their eigenvalues' roots, largest variance first: (d, kept)."""
    values, axes = np.linalg.eigh(moved.T @ moved / len(moved))
    values, axes = values[::-1][:kept], axes[:, ::-1][:, :kept]
    varying = int((values > values[0] * 1e-7).sum())
    if varying < kept:
        raise ModelError(f"the passages vary in {varying} directions only: whiten to at most {varying} dimensions")
    return np.asarray(axes / np.sqrt(values), np.float32)


def _pack(mean: Vector, matrix: Vector | None) -> bytes:
    from safetensors.numpy import save

    return save({"mean": mean} if matrix is None else {"mean": mean, "matrix": np.ascontiguousarray(matrix)})
