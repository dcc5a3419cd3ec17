"""Pairs of sentences whose likeness people have judged (STS): reading their files, and Spearman's correlation."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput

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

    Columns are found by name (score or similarity or label, sentence1, sentence2); a table without a header
    has three, one of them numbers, or is laid out as the STS Benchmark was published (Cer et al., 2017): genre,
    file, year, id, score and the two sentences.

    Raises:
        BadInput: the file cannot be read, a line has other columns or no score, or there are fewer than two pairs.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read ({error}): name a file of UTF-8 text") from error
    rows = _objects(path, text) if path.suffix.lower() in (".jsonl", ".ndjson") else _table(path, text)
    pairs = []
    for number, (score, first, second) in rows:
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


_Rows = list[tuple[int, tuple[Any, Any, Any]]]
"""The number of each line, with its score and sentences."""


def _objects(path: Path, text: str) -> _Rows:
    rows: _Rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadInput(f"{path}:{number}: not JSON ({error.msg}): each line must be an object") from None
        if not isinstance(record, dict):
            raise BadInput(f"{path}:{number}: not an object: write it as {{'score': ..., 'sentence1': ...}}")
        score, first, second = (record[name] for name in _columns(path, list(record)))
        rows.append((number, (score, first, second)))
    return rows


def _table(path: Path, text: str) -> _Rows:
    tabs = "\t" in text.partition("\n")[0]
    lines = io.StringIO(text)
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(lines)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise BadInput(f"{path}:{reader.line_num}: cannot be read ({error}): is a quote left open?") from error
    if not rows:
        raise BadInput(f"{path}: is empty: nothing can be compared with it")
    header = rows[0][1]
    if set(_SCORE) & {name.strip().lower() for name in header}:
        header = [name.strip().lower() for name in header]
        columns = [header.index(name) for name in _columns(path, header)]
        rows = rows[1:]
    elif len(header) >= 7 and _is_number(header[4]):
        columns = [4, 5, 6]
    elif len(header) == 3 and (numbers := [column for column, cell in enumerate(header) if _is_number(cell)]):
        columns = [numbers[0], *(column for column in range(3) if column != numbers[0])]
    else:
        raise BadInput(f"{path}:1: needs a header that names a score, sentence1 and sentence2, found {header!r:.80}")
    for number, row in rows:
        if len(row) <= max(columns):
            raise BadInput(f"{path}:{number}: has {len(row)} columns: a score and two sentences are needed")
    return [(number, (row[columns[0]], row[columns[1]], row[columns[2]])) for number, row in rows]


def _columns(path: Path, names: Sequence[str]) -> list[str]:
    """Return the names of the score and the two sentences among the names of a record."""
    columns = [next((name for name in usual if name in names), None) for usual in (_SCORE, _FIRST, _SECOND)]
    if None in columns:
        raise BadInput(f"{path}: has no score, sentence1 and sentence2 among its fields ({', '.join(names)})")
    return [name for name in columns if name]


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
