"""The measures against values computed by hand and against a reference in numpy."""

from __future__ import annotations

from math import log2
from pathlib import Path

import numpy as np
import pytest

from indexer.errors import BadInput
from likewise.evaluation.measures import Qrels, evaluate, read_qrels, read_queries, read_run, write_run


def ranking(*documents: str) -> list[tuple[str, float]]:
    return [(document, 1.0 - rank / 100) for rank, document in enumerate(documents)]


def test_values_worked_out_by_hand() -> None:
    # Grades: a 2, b 1, c 0. Shown: c a b, so gains 0, 2, 1 at ranks 1, 2, 3.
    # DCG = 0/log2(2) + 2/log2(3) + 1/log2(4) = 1.261860 + 0.5 = 1.761860.
    # Ideal order (2, 1): 2/log2(2) + 1/log2(3) = 2.630930.
    # AP = (1/2 + 2/3) / 2 = 0.583333; RR = 1/2; recall 2/2; P@10 = 2/10.
    report = evaluate({"q": ranking("c", "a", "b")}, Qrels({"q": {"a": 2, "b": 1, "c": 0}}))
    expected = {"nDCG@10": 1.761860 / 2.630930, "AP": 0.583333, "RR@10": 0.5, "R@100": 1.0, "P@10": 0.2}
    assert report.averages == pytest.approx(expected, abs=1e-5)
    assert report.per_query["q"] == pytest.approx(expected, abs=1e-5)


def test_judged_query_without_results_counts_zero() -> None:
    qrels = Qrels({"found": {"a": 1}, "absent": {"b": 1}, "empty": {"c": 1}, "unjudged": {"d": 0}})
    report = evaluate({"found": ranking("a"), "empty": [], "unjudged": ranking("d"), "other": ranking("a")}, qrels)
    assert report.averages["nDCG@10"] == pytest.approx(1 / 3)
    assert report.averages["AP"] == report.averages["RR@10"] == pytest.approx(1 / 3)
    assert set(report.per_query) == {"found", "absent", "empty"}
    assert report.empty == ("absent", "empty")
    assert set(evaluate({}, qrels).averages.values()) == {0.0}


def test_ties_are_judged_in_the_order_shown() -> None:
    qrels = Qrels({"q": {"a": 1}})
    for order, expected in ((("a", "z"), 1.0), (("z", "a"), 0.5)):
        assert evaluate({"q": [(d, 0.7) for d in order]}, qrels).averages["RR@10"] == expected


def test_negative_grades_are_judged_and_not_relevant() -> None:
    report = evaluate({"q": ranking("spam", "a")}, Qrels({"q": {"a": 1, "spam": -2}}))
    assert report.averages["nDCG@10"] == pytest.approx(1 / log2(3))
    assert report.averages["P@10"] == pytest.approx(0.1)


def reference(documents: list[str], grades: dict[str, int]) -> dict[str, float]:
    gains = np.array([grades.get(d, 0) for d in documents])
    ideal = np.array(sorted(grades.values(), reverse=True))[:10]
    discount = 1 / np.log2(np.arange(2, 12))
    relevant, total = gains > 0, sum(g > 0 for g in grades.values())
    precision = np.cumsum(relevant) / np.arange(1, len(gains) + 1)
    first = np.flatnonzero(relevant[:10])
    return {
        "nDCG@10": gains[:10] @ discount[: len(gains[:10])] / (ideal @ discount[: len(ideal)]),
        "AP": float((precision * relevant).sum() / total),
        "RR@10": 1 / (first[0] + 1) if len(first) else 0.0,
        "R@100": relevant[:100].sum() / total,
        "P@10": relevant[:10].sum() / 10,
    }


def test_the_published_example_of_ndcg() -> None:
    """Wikipedia, "Discounted cumulative gain": grades 3 2 3 0 1 2, and 3 and 2 of two documents that are not ranked."""
    grades = {"D1": 3, "D2": 2, "D3": 3, "D4": 0, "D5": 1, "D6": 2, "D7": 3, "D8": 2}
    report = evaluate({"q": ranking("D1", "D2", "D3", "D4", "D5", "D6")}, Qrels({"q": grades}), ["nDCG@6"])
    assert report.averages["nDCG@6"] == pytest.approx(6.861 / 8.740, abs=1e-4)


RECORDED = {
    "nDCG@10": 0.089675624,
    "nDCG@100": 0.220248501,
    "nDCG": 0.373538156,
    "AP": 0.109095891,
    "AP@10": 0.011793999,
    "RR": 0.297547464,
    "RR@10": 0.282073413,
    "R@10": 0.031620855,
    "R@100": 0.324614834,
    "P@5": 0.145,
    "P@10": 0.1425,
}
"""Averages of the random rankings below by ir_measures 0.4.3, which asked pytrec_eval-terrier 0.5.11."""


def test_agrees_with_numpy_and_ir_measures_on_random_rankings() -> None:
    random = np.random.default_rng(7)
    names = [f"d{i}" for i in range(300)]
    run, grades = {}, {}
    for query in (f"q{i}" for i in range(40)):
        run[query] = ranking(*random.permutation(names)[:200].tolist())
        judged = random.permutation(names)[:60].tolist()
        grades[query] = {d: int(g) for d, g in zip(judged, random.integers(0, 4, 60), strict=True)}
    report = evaluate(run, Qrels(grades))
    for query, row in report.per_query.items():
        assert row == pytest.approx(reference([d for d, _ in run[query]], grades[query]), abs=1e-6)
    assert evaluate(run, Qrels(grades), list(RECORDED)).averages == pytest.approx(RECORDED, abs=1e-8)


def test_refuses_what_it_cannot_judge() -> None:
    with pytest.raises(BadInput, match="no query of the qrels has a relevant document"):
        evaluate({}, Qrels({"q": {"a": 0}}))
    with pytest.raises(BadInput, match="holds a document twice"):
        evaluate({"q": ranking("a", "a")}, Qrels({"q": {"a": 1}}))
    for name in ("nonsense", "R", "P@0", "nDCG@", "nDCG@10 "):
        with pytest.raises(BadInput, match=f"'{name}' is not a measure: use names such as nDCG@10, AP"):
            evaluate({}, Qrels({"q": {"a": 1}}), measures=[name])


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_reads_beir_and_trec(tmp_path: Path) -> None:
    queries = read_queries(write(tmp_path / "q.jsonl", '{"_id": "1", "text": "one"}\n\n{"id": 2, "text": "two"}\n'))
    assert queries == {"1": "one", "2": "two"}
    beir = read_qrels(write(tmp_path / "r.tsv", "query-id\tcorpus-id\tscore\n1\ta b\t2\r\n2\tc\t0\n"), queries)
    assert beir == Qrels({"1": {"a b": 2}, "2": {"c": 0}})
    assert beir.judged == ("1",)
    assert read_qrels(write(tmp_path / "r.trec", "1 0 a 1\n1 0 b -1\n")) == Qrels({"1": {"a": 1, "b": -1}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("query-id\tcorpus-id\tscore\n", "no judgment"),
        ("query-id\tscore\tcorpus-id\n1\ta\t1\n", r"bad:1: the header must be"),
        ("query-id\tcorpus-id\tscore\n1\ta\t0.5\n", r"bad:2: the grade '0.5' is not an integer"),
        (
            "query-id\tcorpus-id\tscore\n1\ta\t1\n9\ta\t1\n",
            r"bad:3: the query '9' is not among the questions",
        ),
        ("query-id\tcorpus-id\tscore\n1\ta\t1\n1\ta\t2\n", r"bad:3: 'a' is judged twice"),
        ("1\ta\t1\n", r"bad:1: cannot read the judgment"),
    ],
)
def test_bad_qrels_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        read_qrels(write(tmp_path / "bad", text), {"1": "one"})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" \n", "is empty"),
        ("how do I pay", r"bad:1: not JSON .*: each line must be an object with _id and text"),
        ("{", r"bad:1: not JSON"),
        ("[1]", r"bad:1: not an object"),
        ('{"text": "x"}', r"bad:1: the question has no id"),
        ('{"_id": "1", "text": " "}', r"bad:1: question '1' has no text"),
        (
            '{"_id": "1", "text": "x"}\n{"_id": "1", "text": "y"}',
            r"bad:2: question '1' is in the file twice",
        ),
    ],
)
def test_bad_queries_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_queries(write(tmp_path / "bad", text))


def test_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_qrels(tmp_path / "none.tsv")


def test_run_file_round_trip_keeps_ties_in_order(tmp_path: Path) -> None:
    run = {"q1": [("b", 0.5), ("a", 0.5), ("c", 0.1)], "q2": [("a", -3.25)]}
    write_run(run, tmp_path / "run")
    assert (tmp_path / "run").read_text().splitlines()[0] == "q1 Q0 b 1 0.5 likewise"
    found = read_run(tmp_path / "run")
    for query, ranking in run.items():
        assert [document for document, _ in found[query]] == [document for document, _ in ranking]
        assert [score for _, score in found[query]] == pytest.approx([score for _, score in ranking], abs=1e-6)
        written = np.array([score for _, score in found[query]], np.float32)
        assert (np.diff(written) < 0).all()  # trec_eval's own order is the one that was judged
    with pytest.raises(BadInput, match="without white space"):
        write_run({"q": [("a b", 1.0)]}, tmp_path / "run")
    with pytest.raises(BadInput, match=r"bad:1: must be query, Q0"):
        read_run(write(tmp_path / "bad", "q Q0 a first 0.5 x\n"))
