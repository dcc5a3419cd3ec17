"""Evaluating rankings: questions, judgments (qrels), run files and the standard measures.

The measures are those of trec_eval, by their names in ir_measures. Nothing here searches an index or prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput
from likewise.evaluation.records import read_object, read_text

Run = Mapping[str, Sequence[tuple[str, float]]]
"""A ranking of (document, score), best first, for each query id."""

MEASURES = ("nDCG@10", "AP", "RR@10", "R@100", "P@10")
"""The default measures of `evaluate`. The average of AP is MAP, that of RR@10 is MRR@10."""

_MEASURE = re.compile(r"(nDCG|AP|RR|(R|P)(?=@))(@[1-9][0-9]*)?")
"""The name of a measure with its depth. Recall and precision need one."""

Grades = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Qrels:
    """Relevance judgments.

    Attributes:
        grades: grade of each judged document, by query id; above 0 is relevant, 0 or less is not.
    """

    grades: Mapping[str, Mapping[str, int]]

    @property
    def judged(self) -> tuple[str, ...]:
        """Queries with at least one relevant document, in the order of the file."""
        return tuple(query for query, grades in self.grades.items() if any(g > 0 for g in grades.values()))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values of a run by each measure.

    Attributes:
        averages: mean over the judged queries, by measure.
        per_query: value by measure, for each judged query.
        empty: judged queries for which the run has no document; they count 0.
    """

    averages: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]
    empty: tuple[str, ...] = ()


def evaluate(run: Run, qrels: Qrels, measures: Sequence[str] = MEASURES) -> Evaluation:
    """Evaluate a run on the queries that have a relevant document. A query without results counts 0.

    The order of the run is judged, not its scores: trec_eval would order equal scores by document id, which is not
    the order that a user sees.

    Args:
        measures: nDCG, AP (average precision), RR (reciprocal rank), R (recall) and P (precision), with a depth such as
            "nDCG@10". Gains of nDCG are the grades, discounted by log2(rank + 1).

    Raises:
        BadInput: no query is judged, a name is not a measure, or a ranking holds a document twice.
    """
    judged = qrels.judged
    if not judged:
        raise BadInput("no query of the qrels has a relevant document: at least one grade must be 1 or more")
    for name in measures:
        if not _MEASURE.fullmatch(name):
            raise BadInput(f"{name!r} is not a measure: use names such as {', '.join(MEASURES)}")
    values = {query: dict.fromkeys(measures, 0.0) for query in judged}
    ranked = [query for query in judged if run.get(query)]
    for query in ranked:
        gains = _gains(query, run[query], qrels.grades[query])
        ideal = np.sort([grade for grade in qrels.grades[query].values() if grade > 0])[::-1]
        values[query] = {name: _measure(name, gains, ideal) for name in measures}
    averages = {name: sum(values[query][name] for query in judged) / len(judged) for name in measures}
    return Evaluation(
        averages=MappingProxyType(averages),
        per_query=MappingProxyType({query: MappingProxyType(row) for query, row in values.items()}),
        empty=tuple(query for query in judged if not run.get(query)),
    )


def read_queries(path: str | Path) -> dict[str, str]:
    """Read questions in BEIR form, JSON lines with `_id` (or `id`) and `text`.

    Returns:
        The text of each query id, in the order of the file.

    Raises:
        BadInput: the file cannot be read or is empty, or a question lacks its id or text or repeats an id.
    """
    queries: dict[str, str] = {}
    for place, line in _lines(path):
        query, text = _record(place, line)
        if query == "":
            raise BadInput(f"{place}: the question has no id: add the member _id")
        if not text.strip():
            raise BadInput(f"{place}: question {query!r} has no text: add the member text")
        if query in queries:
            raise BadInput(f"{place}: question {query!r} is in the file twice: keep one of them")
        queries[query] = text
    return queries


def _record(place: str, line: str) -> tuple[str, str]:
    """Return the id and text of a line of JSON; an id or text that it lacks is empty."""
    record = read_object(place, line, "an object with _id and text")
    query, text = record.get("_id", record.get("id")), record.get("text")
    has_id = isinstance(query, str | int) and not isinstance(query, bool)
    return str(query) if has_id else "", text if isinstance(text, str) else ""


def read_qrels(path: str | Path, queries: Mapping[str, str] | None = None) -> Qrels:
    """Read judgments: tab-separated with the header query-id, corpus-id, score, or TREC's four columns.

    Args:
        queries: the known queries. A judgment of an unknown query is an error.

    Raises:
        BadInput: the file cannot be read or is empty, a line has another form, a grade is not an integer,
            a query is unknown, or a document is judged twice with different grades.
    """
    grades: dict[str, dict[str, int]] = {}
    tabbed = False
    for row, (place, line) in enumerate(_lines(path)):
        if row == 0 and line.split("\t")[0].strip() == "query-id":
            if [field.strip() for field in line.split("\t")] != ["query-id", "corpus-id", "score"]:
                raise BadInput(f"{place}: the header must be query-id, corpus-id, score, separated by tabs")
            tabbed = True
            continue
        fields = [field.strip() for field in line.split("\t")] if tabbed else line.split()
        if len(fields) != (3 if tabbed else 4) or "" in fields:
            expected = "query-id, corpus-id, score separated by tabs" if tabbed else "query, iteration, document, grade"
            hint = "" if tabbed else " (or begin the file with the header of a TSV)"
            raise BadInput(f"{place}: cannot read the judgment {line[:60]!r}: it must be {expected}{hint}")
        query, document, grade = fields[0], fields[-2], fields[-1]
        if not re.fullmatch(r"[+-]?[0-9]+", grade):
            raise BadInput(
                f"{place}: the grade {grade!r} is not an integer: write 0 for not relevant, 1 or more if it is"
            )
        if queries is not None and query not in queries:
            raise BadInput(f"{place}: the query {query!r} is not among the questions: add it there or drop the line")
        if grades.setdefault(query, {}).setdefault(document, int(grade)) != int(grade):
            raise BadInput(f"{place}: {document!r} is judged twice for the query {query!r}: keep one grade")
    if not grades:
        raise BadInput(f"{path}: has a header but no judgment: add lines of query-id, corpus-id, score")
    return Qrels(grades)


def write_run(run: Run, path: str | Path) -> None:
    """Write a run in the form of trec_eval: query, Q0, document, rank from 1, score, tag.

    Raises:
        BadInput: an id contains white space, which separates the columns.
    """
    lines = []
    for query, ranking in run.items():
        last = np.float32(np.inf)
        for rank, (document, score) in enumerate(ranking, 1):
            # trec_eval orders by score as float32, and equal scores by id: slightly lower ones keep our order.
            last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
            for name in (query, document):
                if not name or re.search(r"\s", name):
                    raise BadInput(f"{name!r} cannot be written to a TREC run: ids must be without white space")
            lines.append(f"{query} Q0 {document} {rank} {float(last)!r} likewise\n")
    Path(path).write_text("".join(lines), encoding="utf-8")


def read_run(path: str | Path) -> dict[str, list[tuple[str, float]]]:
    """Read a TREC run in the order of its rank column.

    Raises:
        BadInput: the file cannot be read or is empty, or a line does not have six columns with numeric rank and score.
    """
    rows: dict[str, list[tuple[int, str, float]]] = {}
    for place, line in _lines(path):
        try:
            query, _, document, rank, score, _ = line.split()
            rows.setdefault(query, []).append((int(rank), document, float(score)))
        except ValueError:
            raise BadInput(f"{place}: must be query, Q0, document, rank, score, tag: found {line[:60]!r}") from None
    return {
        query: [(document, score) for _, document, score in sorted(ranking, key=lambda row: row[0])]
        for query, ranking in rows.items()
    }


def _lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """Yield ("FILE:LINE", line) of every line that is not blank. Raises BadInput if there is none."""
    text = read_text(path)
    if not text.strip():
        raise BadInput(f"{path}: is empty: nothing can be judged with it")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{path}:{number}", line.rstrip("\r")


def _gains(query: str, ranking: Sequence[tuple[str, float]], grades: Mapping[str, int]) -> Grades:
    """Return the grade of each ranked document (n,), 0 for unjudged and negative ones."""
    if len({document for document, _ in ranking}) != len(ranking):
        raise BadInput(f"the ranking for the query {query!r} holds a document twice: rank each once")
    return np.array([max(grades.get(document, 0), 0) for document, _ in ranking])


def _measure(name: str, gains: Grades, ideal: Grades) -> float:
    """Return one measure of one ranking.

    Args:
        gains: grades of the ranked documents (n,), best first.
        ideal: grades of all relevant documents, highest first.
    """
    kind, _, depth = name.partition("@")
    shown = gains[: int(depth)] if depth else gains
    ranks = np.flatnonzero(shown) + 1
    if kind == "nDCG":
        return _dcg(shown) / _dcg(ideal[: int(depth)] if depth else ideal)
    if kind == "RR":
        return float(1 / ranks[0]) if len(ranks) else 0.0
    if kind == "AP":
        return float((np.arange(1, len(ranks) + 1) / ranks).sum() / len(ideal))
    return len(ranks) / (len(ideal) if kind == "R" else int(depth))


def _dcg(gains: Grades) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())
