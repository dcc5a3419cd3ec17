"""Pairs of sentences whose likeness people have judged (STS): reading their files, and Spearman's correlation."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput
from likewise.evaluation.records import read_object, read_text

_FIRST = ("sentence1", "text1", "first")
_SECOND = ("sentence2", "text2", "second")
_SCORE = ("score", "similarity_score", "similarity", "label")


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """Pairs of sentences with people's scores.

    Attributes:
        name: name of the file without its ending.
        first, second: the sentences of each pair.
        scores: likeness (n,); higher is more alike, on any scale.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: NDArray[np.float64]


def read_sts(path: Path) -> JudgedPairs:
    """Read judged pairs: JSON lines, or a table with commas (quoted) or tabs (never quoted).

    Columns are found by name: score or similarity or label, sentence1 or text1, sentence2 or text2.

    Raises:
        BadInput: the file cannot be read, a line has other columns or no score, or there are fewer than two pairs.
    """
    text = read_text(path)
    rows = _objects(path, text) if path.suffix.lower() in (".jsonl", ".ndjson") else _table(path, text)
    if not rows:
        raise BadInput(f"{path}: is empty: nothing can be compared with it")
    pairs = []
    for number, record in rows:
        score, first, second = (record[name] for name in _columns(path, record))
        try:
            value = float(score)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value) or not isinstance(first, str) or not isinstance(second, str):
            raise BadInput(f"{path}:{number}: must be a score and two sentences, found {[score, first, second]!r:.80}")
        if not first.strip() or not second.strip():
            raise BadInput(f"{path}:{number}: a sentence is empty: leave the pair out")
        pairs.append((value, first, second))
    if len({score for score, _, _ in pairs}) < 2:
        raise BadInput(f"{path}: needs at least two pairs of different scores: nothing can be correlated")
    scores, first, second = zip(*pairs, strict=True)
    return JudgedPairs(path.stem, first, second, np.array(scores))


def spearman(cosines: NDArray[np.floating], scores: NDArray[np.float64]) -> float:
    """Return Spearman's rank correlation times 100, as in the STS literature (Reimers et al., 2016).

    It is 0 if all cosines are equal.
    """
    from scipy.stats import spearmanr

    if np.ptp(cosines) == 0:
        return 0.0
    return 100 * float(spearmanr(cosines, scores).statistic)


_Rows = list[tuple[int, Mapping[str, Any]]]
"""The number of each line, with its cells by the names of their columns."""


def _objects(path: Path, text: str) -> _Rows:
    form = "an object such as {'score': ..., 'sentence1': ..., 'sentence2': ...}"
    lines = enumerate(text.split("\n"), 1)
    return [(number, read_object(f"{path}:{number}", line, form)) for number, line in lines if line.strip()]


def _table(path: Path, text: str) -> _Rows:
    tabs = "\t" in text.partition("\n")[0]
    quoting: Any = csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL
    reader = csv.DictReader(io.StringIO(text), delimiter="\t" if tabs else ",", quoting=quoting)
    try:
        reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise BadInput(f"{path}:{reader.line_num}: cannot be read ({error}): is a quote left open?") from error


def _columns(path: Path, record: Mapping[str, Any]) -> list[str]:
    """Return the names of the score and the two sentences among the names of a record."""
    columns = [next((name for name in usual if name in record), None) for usual in (_SCORE, _FIRST, _SECOND)]
    if None in columns:
        fields = ", ".join(map(str, record))
        raise BadInput(f"{path}: has no score, sentence1 and sentence2 among its fields ({fields}): add a header")
    return [name for name in columns if name]
