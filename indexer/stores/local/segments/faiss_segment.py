"""Segments in FAISS: built, opened and searched by position.

The caller knows which passage is at which position. Scores are inner products, which for unit rows are cosines.

An exact segment holds the stored vectors themselves (float16) and is scanned whole. An approximate one also has an
inverted file over product-quantised codes (Jégou, Douze and Schmid 2011; André, Kermarrec and Le Scouarnec 2015): it
proposes candidates, which are scored from the same float16 vectors. How far it looks is tuned when it is built.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged
from indexer.records import Vector
from indexer.stores.local.segments.files import Positions, SegmentFile, map_positions, paths, publish, verify
from indexer.stores.local.segments.masks import MAX_EXACT_ROWS, Mask
from indexer.stores.vectors import to_float32

# A forked child has none of the threads that FAISS would wait for, so FAISS works in the calling thread there.
os.register_at_fork(after_in_child=lambda: faiss.omp_set_num_threads(1))

EXACT, APPROXIMATE = "exact", "approximate"

MIN_APPROXIMATE_ROWS = 256
"""Minimum rows of an approximate segment. With fewer rows there is nothing to train on, so the segment is exact."""

_BATCH_ROWS = 16_384

_TUNING_QUESTIONS = 256
"""Number of questions that tune an approximate segment: they measure recall to about half a percentage point."""

_TUNED_MISS_SHARE = 0.5
"""Tuning aims at this share of the misses that are allowed, because real questions were up to one percentage point
harder than the tuning questions."""

_TUNED_DEPTHS = (10, 100, 1000)
"""Numbers of nearest rows that a segment is tuned to find."""

_MAX_CANDIDATES = 8192
"""Maximum candidates. The ten nearest of a million passages are among the first 700; ten million passages need more."""

_CANDIDATE_COST_CODES = 30
"""Scoring one candidate takes as long as scanning about this many codes."""

SegmentHits = tuple[NDArray[np.float32], NDArray[np.int64], bool]
"""Scores (n,) and positions (n,), best first, and whether they are provably the best."""

_NO_HITS: SegmentHits = (np.empty(0, np.float32), np.empty(0, np.int64), True)


class Reach(NamedTuple):
    """How far to look for the nearest rows.

    Attributes:
        depth: how many nearest rows it was tuned for.
        rows: rows of the nearest lists to scan.
        candidates: candidates to score exactly.
    """

    depth: int
    rows: int
    candidates: int


def build(
    folder: Path,
    name: str,
    dimensions: int,
    passages: NDArray[np.int64],
    documents: NDArray[np.int64],
    batches: Iterable[Vector],
    recall: float | None = None,
) -> SegmentFile:
    """Write a segment of unit rows. A search compares each of them with the question.

    Args:
        passages, documents: ids at each position (n,).
        batches: the rows in order of their positions, in batches (rows, dimensions).
        recall: write an inverted file instead, tuned to find this share of the nearest 10, 100 and 1000 rows.

    Raises:
        StorageError: the disk refused; nothing is left behind.
    """
    flat = _flat(dimensions, batches)
    if recall is None:
        positions = Positions(passages, documents, None)
        return publish(folder, name, EXACT, positions, lambda path: faiss.write_index(flat, str(path)))
    whole, lists, parameters = _inverted(flat, recall)
    positions = Positions(passages, documents, lists)
    return publish(folder, name, APPROXIMATE, positions, lambda path: faiss.write_index(whole, str(path)), parameters)


def _inverted(flat: faiss.IndexScalarQuantizer, recall: float) -> tuple[faiss.IndexRefine, NDArray[np.int32], str]:
    """Return an inverted file of the rows, the list of each row, and how it is searched as JSON."""
    count = flat.ntotal
    random = np.random.default_rng(0)
    ivf, description = _train(flat, random)
    sample = _tuning_questions(flat, random)
    depth = min(_TUNED_DEPTHS[-1], count)
    nearest: NDArray[np.int64] = np.empty((len(sample), 0), np.int64)
    scores: Vector = np.empty((len(sample), 0), np.float32)
    for start in range(0, count, _BATCH_ROWS):
        rows = flat.reconstruct_n(start, min(_BATCH_ROWS, count - start))
        ivf.add(rows)
        scores = np.hstack([scores, sample @ rows.T])
        nearest = np.hstack([nearest, np.tile(np.arange(start, start + len(rows)), (len(sample), 1))])
        if scores.shape[1] > depth:
            best = np.argpartition(scores, -depth, axis=1)[:, -depth:]
            scores, nearest = np.take_along_axis(scores, best, 1), np.take_along_axis(nearest, best, 1)
    nearest = np.take_along_axis(nearest, np.argsort(-scores, axis=1, kind="stable"), 1)
    reaches = _tune(ivf, sample, nearest, 1 - _TUNED_MISS_SHARE * (1 - recall))
    lists = np.empty(count, np.int32)
    inverted = faiss.downcast_InvertedLists(ivf.invlists)  # type: ignore[arg-type]
    for number in range(ivf.nlist):
        if size := inverted.list_size(number):
            lists[faiss.rev_swig_ptr(inverted.get_ids(number), size)] = number
    parameters = {"index": description, "recall": recall, "reach": [[r.depth, r.rows, r.candidates] for r in reaches]}
    return faiss.IndexRefine(ivf, flat), lists, json.dumps(parameters)


def _flat(dimensions: int, batches: Iterable[Vector]) -> faiss.IndexScalarQuantizer:
    flat = faiss.IndexScalarQuantizer(dimensions, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    for batch in batches:
        flat.add(batch)
    return flat


def _train(flat: faiss.IndexScalarQuantizer, random: np.random.Generator) -> tuple[faiss.IndexIVF, str]:
    """Return an empty inverted file that is trained for these rows, and its description for FAISS's index factory."""
    count, dimensions = flat.ntotal, flat.d
    lists = min(2 ** round(math.log2(4 * math.sqrt(count))), max(1, count // 39))  # FAISS wants 39 rows per list
    pieces = max(m for m in range(1, max(1, dimensions // 4) + 1) if dimensions % m == 0)
    # Codes of four bits, one per four dimensions; where that does not divide evenly, one byte per dimension.
    coding = f"PQ{pieces}x4fs" if dimensions <= 6 * pieces else "SQ8"
    description = f"IVF{lists},{coding}"
    ivf = faiss.index_factory(dimensions, description, faiss.METRIC_INNER_PRODUCT)
    assert isinstance(ivf, faiss.IndexIVF)
    ivf.cp.niter, ivf.cp.max_points_per_centroid, ivf.cp.min_points_per_centroid = 10, 64, 1
    if isinstance(ivf, faiss.IndexIVFPQFastScan):
        ivf.pq.cp.min_points_per_centroid = 1
    sample = min(count, max(64 * lists, 65_536))
    ivf.train(flat.reconstruct_batch(np.sort(random.choice(count, sample, replace=False))))
    return ivf, f"{description},Refine(SQfp16)"


def _tuning_questions(flat: faiss.IndexScalarQuantizer, random: np.random.Generator) -> Vector:
    """Return unit vectors (questions, dimensions) that are as far from the rows as questions are: means of three rows.

    The rows themselves would be too easy: with a million passages, the settings that find .99 of a row's neighbours
    find .80 of a real question's. The mean of three rows is as far from its neighbours as a question is (cosine of the
    nearest .69 and .64), and a little harder: .971 and .989 are found at the same settings.
    """
    chosen = flat.reconstruct_batch(random.integers(flat.ntotal, size=3 * _TUNING_QUESTIONS))
    rows = chosen.reshape(_TUNING_QUESTIONS, 3, -1).sum(axis=1)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), np.float32)


def _tune(ivf: faiss.IndexIVF, sample: Vector, nearest: NDArray[np.int64], recall: float) -> list[Reach]:
    """Return the reach with the least work that finds `recall` of the sample's neighbours, for each depth.

    Candidates are scored exactly: a neighbour is found if it is among them.

    Args:
        sample: unit rows (questions, dimensions).
        nearest: positions of the nearest rows of each question, nearest first (questions, depth).
    """
    average = max(1.0, ivf.ntotal / ivf.nlist)
    probes = sorted({*(2**power for power in range(ivf.nlist.bit_length()) if 2**power <= ivf.nlist), ivf.nlist})
    reaches = []
    for depth in (d for d in _TUNED_DEPTHS if d <= nearest.shape[1] or d == _TUNED_DEPTHS[0]):
        questions = slice(max(32, 10 * _TUNING_QUESTIONS // depth))  # deep rankings have many neighbours each
        truth = nearest[questions, :depth]
        most = min(ivf.ntotal, _MAX_CANDIDATES)
        best: tuple[float, Reach] | None = None
        for probe in probes:
            _, proposed = ivf.search(sample[questions], most, params=faiss.SearchParametersIVF(nprobe=probe))  # type: ignore[call-arg]
            ranks = np.concatenate([_ranks(t, p) for t, p in zip(truth, proposed, strict=True)])
            needed = np.sort(ranks)[min(len(ranks) - 1, math.ceil(recall * len(ranks)) - 1)]
            if needed == most:  # not found: without any reach, a search of this depth looks at everything
                continue
            reach = Reach(depth, math.ceil(probe * average), max(2 * depth, 32, int(needed) + 1))
            work = reach.rows + _CANDIDATE_COST_CODES * reach.candidates
            if best is not None and reach.rows > best[0]:
                break
            if best is None or work < best[0]:
                best = work, reach
        if best is not None:
            reaches.append(best[1])
    return reaches


def _ranks(truth: NDArray[np.int64], proposed: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rank of each true neighbour among the proposed ones, and their number if it is not among them."""
    order = np.argsort(proposed)
    places = np.minimum(np.searchsorted(proposed, truth, sorter=order), len(proposed) - 1)
    return np.where(proposed[order[places]] == truth, order[places], len(proposed))


class FaissSegment:
    """An open segment, mapped into memory: pages are read when a search needs them. Safe to share among threads."""

    def __init__(self, folder: Path, recorded: SegmentFile) -> None:
        verify(folder, recorded)
        path, _ = paths(folder, recorded.file)
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexDamaged(f"segment {path}: cannot be opened ({error})") from error
        if index.ntotal != recorded.count:
            raise IndexDamaged(f"segment {path}: holds {index.ntotal} vectors instead of {recorded.count}")
        self.recorded = recorded
        self.positions = map_positions(folder, recorded)
        self._whole = index  # owns the memory that the next two point into
        self._ivf: faiss.IndexIVF | None = None
        self._reach: list[Reach] = []
        if isinstance(index, faiss.IndexRefine):
            ivf, index = faiss.downcast_index(index.base_index), faiss.downcast_index(index.refine_index)
            assert isinstance(ivf, faiss.IndexIVF)
            self._ivf = ivf
            self._centroids = ivf.quantizer.reconstruct_n(0, ivf.nlist)
            self._reach = [Reach(*reach) for reach in json.loads(recorded.parameters)["reach"]]
        assert isinstance(index, faiss.IndexScalarQuantizer)
        self._flat = index
        codes = faiss.rev_swig_ptr(index.codes.data(), index.codes.size())
        self._rows = codes.view("<f2").reshape(index.ntotal, index.d)

    def rows(self, positions: NDArray[np.int64]) -> Vector:
        """Return the vectors at these positions (n, dimensions), float32."""
        return to_float32(self._rows[positions])

    def search(self, vector: Vector, n: int, mask: Mask | None, depth: int | None) -> SegmentHits:
        """Return the n best positions for a unit vector (dimensions,), or all allowed positions if there are fewer.

        Args:
            mask: the allowed positions; None allows all.
            depth: number of the best positions that must be right; None scores every allowed row, whatever the kind.
        """
        n = min(n, len(self._rows) if mask is None else mask.count)
        if not n:
            return _NO_HITS
        if mask is not None and mask.positions is not None:
            return (*_best(self.rows(mask.positions) @ vector, mask.positions, n), True)
        selector = None if mask is None else faiss.IDSelectorBitmap(mask.bits)  # type: ignore[call-arg, arg-type]
        if mask is not None and mask.count <= MAX_EXACT_ROWS:
            depth = None
        reach = next((reach for reach in self._reach if depth is not None and depth <= reach.depth), None)
        with _in_this_thread():
            if reach is not None:
                scores, positions = self._search_lists(vector, n, reach, mask, selector)
                if len(positions) == n:
                    return scores, positions, False
            parameters = None if selector is None else faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
            return (*_without_padding(*self._flat.search(vector[None, :], n, params=parameters)), True)

    def _search_lists(
        self, vector: Vector, n: int, reach: Reach, mask: Mask | None, selector: faiss.IDSelector | None
    ) -> tuple[Vector, NDArray[np.int64]]:
        """Return the n best candidates of the nearest lists, or all candidates if there are fewer."""
        assert self._ivf is not None
        if mask is None or mask.per_list is None:
            probes = math.ceil(reach.rows * self._ivf.nlist / len(self._rows))
        else:
            # Scan as many allowed rows as without a filter: the lists near the question may hold none of them.
            nearest = np.argsort(-(self._centroids @ vector), kind="stable")
            per_list = np.zeros(self._ivf.nlist, np.int64)
            per_list[: len(mask.per_list)] = mask.per_list
            probes = int(np.searchsorted(np.cumsum(per_list[nearest]), reach.rows)) + 1
        parameters = faiss.IndexRefineSearchParameters(  # type: ignore[call-arg]
            k_factor=max(2.0, (reach.candidates + 0.5) / n),
            base_index_params=faiss.SearchParametersIVF(nprobe=min(probes, self._ivf.nlist), sel=selector),  # type: ignore[call-arg]
        )
        return _without_padding(*self._whole.search(vector[None, :], n, params=parameters))


@contextmanager
def _in_this_thread() -> Iterator[None]:
    """Let FAISS work in the calling thread alone.

    One question is too little work for several threads, and the other threads would spin until the search ends: at
    5,000 passages a search took 2 to 4 ms of CPU instead of 0.2 ms (2 cores, Xeon). Building a segment uses all cores.
    """
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _without_padding(scores: Vector, positions: NDArray[np.int64]) -> tuple[Vector, NDArray[np.int64]]:
    kept = positions[0] >= 0  # FAISS pads with -1
    return scores[0][kept], positions[0][kept]


class PlainSegment:
    """Rows that are kept in memory and scanned with numpy: the rows of the tail, or of a segment whose file is
    damaged."""

    def __init__(self, vectors: Vector, positions: Positions) -> None:
        self.vectors, self.positions = vectors, positions

    def rows(self, positions: NDArray[np.int64]) -> Vector:
        """Return the vectors at these positions (n, dimensions), float32."""
        return self.vectors[positions]

    def search(self, vector: Vector, n: int, mask: Mask | None, depth: int | None) -> SegmentHits:
        """Do the same as `FaissSegment.search`, always exactly."""
        if mask is None:
            return (*_best(self.vectors @ vector, np.arange(len(self.vectors)), n), True)
        allowed = mask.positions
        if allowed is None:
            allowed = np.flatnonzero(np.unpackbits(mask.bits, bitorder="little", count=len(self.vectors)))
        return (*_best(self.vectors[allowed] @ vector, allowed, n), True)


def _best(scores: Vector, positions: NDArray[np.int64], n: int) -> tuple[Vector, NDArray[np.int64]]:
    if n < len(scores):
        best = np.argpartition(scores, -n)[-n:]
        scores, positions = scores[best], positions[best]
    order = np.argsort(-scores, kind="stable")
    return scores[order], positions[order]
