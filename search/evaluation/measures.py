"""Evaluating rankings: questions, judgments (qrels), run files and the standard measures.

The measures are computed by ir_measures. Nothing here searches an index or prints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from indexer.errors import BadInput
from search.evaluation.topics import parse_tabbed, parse_topics

Run = Mapping[str, Sequence[tuple[str, float]]]
"""A ranking of (document, score), best first, for each query id."""

MEASURES = ("nDCG@10", "AP", "RR@10", "R@100", "P@10")
"""The default measures of `evaluate`. The average of AP is MAP, that of RR@10 is MRR@10."""


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
    the order that a user sees. So trec_eval gets strictly falling scores.

    Args:
        measures: names as ir_measures spells them, such as "nDCG@10".

    Raises:
        BadInput: no query is judged, a name is not a measure, or a ranking holds a document twice.
    """
    import ir_measures

    judged = qrels.judged
    if not judged:
        raise BadInput("no query of the qrels has a relevant document: at least one grade must be 1 or more")
    parsed = _parse_measures(tuple(measures))
    values = {query: dict.fromkeys(measures, 0.0) for query in judged}
    ranked = {query: _by_rank(query, run[query]) for query in judged if run.get(query)}
    graded = {query: {d: max(g, 0) for d, g in qrels.grades[query].items()} for query in ranked}
    if ranked:
        names = {measure: name for name, measure in parsed.items()}
        for metric in ir_measures.iter_calc(list(names), graded, ranked):
            values[metric.query_id][names[metric.measure]] = float(metric.value)
    averages = {name: sum(values[query][name] for query in judged) / len(judged) for name in measures}
    return Evaluation(
        averages=MappingProxyType(averages),
        per_query=MappingProxyType({query: MappingProxyType(row) for query, row in values.items()}),
        empty=tuple(query for query in judged if query not in ranked),
    )


def read_queries(path: str | Path) -> dict[str, str]:
    """Read questions in BEIR form, JSON lines with `_id` (or `id`) and `text`, or in a form of TREC (topics.py).

    Returns:
        The text of each query id, in the order of the file.

    Raises:
        BadInput: the file cannot be read or is empty, or a question lacks its id or text or repeats an id.
    """
    queries: dict[str, str] = {}
    for place, query, text in _questions(path):
        if query == "":
            raise BadInput(f"{place}: the question has no id: add one (_id, <num>, or the first column)")
        if not text.strip():
            raise BadInput(f"{place}: question {query!r} has no text: add it (text, <title>, or the second column)")
        if query in queries:
            raise BadInput(f"{place}: question {query!r} is in the file twice: keep one of them")
        queries[query] = text
    return queries


def _questions(path: str | Path) -> Iterator[tuple[str, str, str]]:
    """Yield ("FILE:LINE", id, text) of every question, in the form that the file begins with."""
    lines = list(_lines(path))
    first = lines[0][1].lstrip()
    if first.startswith("<"):
        topics = list(parse_topics(Path(path).read_text(encoding="utf-8-sig")))
        if not topics:
            raise BadInput(f"{path}: has no <top> or <topic>, so it asks no question")
        yield from ((f"{path}:{line}", query, text) for line, query, text in topics)
    elif "\t" in first and not first.startswith("{"):
        yield from ((place, *parse_tabbed(line)) for place, line in lines)
    else:
        yield from ((place, *_record(place, line)) for place, line in lines)


def _record(place: str, line: str) -> tuple[str, str]:
    """Return the id and text of a line of JSON; an id or text that it lacks is empty."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{place}: not JSON ({error.msg}): each line must be an object with _id and text, or an id, a tab and the "
            "question"
        ) from None
    if not isinstance(record, dict):
        raise BadInput(f"{place}: not an object: write it as {{'_id': ..., 'text': ...}}")
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
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read ({error}): name a file of UTF-8 text") from error
    if not text.strip():
        raise BadInput(f"{path}: is empty: nothing can be judged with it")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{path}:{number}", line.rstrip("\r")


def _by_rank(query: str, ranking: Sequence[tuple[str, float]]) -> dict[str, float]:
    scores = {document: float(-rank) for rank, (document, _) in enumerate(ranking)}
    if len(scores) != len(ranking):
        raise BadInput(f"the ranking for the query {query!r} holds a document twice: rank each once")
    return scores


@cache
def _parse_measures(names: tuple[str, ...]) -> dict[str, Any]:
    import ir_measures

    parsed = {}
    for name in names:
        try:
            parsed[name] = ir_measures.parse_measure(name)
        except (ValueError, NameError) as error:
            raise BadInput(f"{name!r} is not a measure: use names such as {', '.join(MEASURES)}") from error
    return parsed
