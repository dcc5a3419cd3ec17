"""likewise evaluate: judged questions, compared with an earlier run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_run_is_compared_with_another(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    folder = tmp_path / "x.index"
    names = ["bread", "river", "moon", "vault"]
    likewise("index", folder, "-", stdin=lines(*({"id": name, "text": f"{name} {name}"} for name in names)))
    write(tmp_path / "q.jsonl", lines(*({"_id": name, "text": name} for name in names)))
    write(tmp_path / "r.tsv", "query-id\tcorpus-id\tscore\n" + "".join(f"{n}\t{n}\t1\n" for n in names))
    arguments = ["evaluate", folder, "--queries", tmp_path / "q.jsonl", "--qrels", tmp_path / "r.tsv"]
    assert likewise(*arguments, "--run", tmp_path / "a.run").code == 0
    likewise(*arguments, "--run", tmp_path / "none" / "a.run").failed(2, "there is no folder")
    same = likewise(*arguments, "--against", tmp_path / "a.run", "--json").json
    assert same["averages"]["nDCG@10"] == same["against"]["nDCG@10"]["average"] == 1
    assert same["against"]["nDCG@10"]["p"] == 1
    write(tmp_path / "b.run", "".join(f"{n} Q0 none 1 1.0 x\n{n} Q0 {n} 2 0.5 x\n" for n in names))
    other = likewise(*arguments, "--against", tmp_path / "b.run", "--json").json["against"]
    assert other["RR@10"]["average"] == pytest.approx(0.5)
    assert other["RR@10"]["p"] < 0.01
    assert "+0.5000 against 0.5000, p = 0.0" in likewise(*arguments, "--against", tmp_path / "b.run").out
    said = likewise(*arguments, "--per-query", "--json")
    assert {query: row["nDCG@10"] for query, row in said.json["per_query"].items()} == dict.fromkeys(names, 1.0)
    write(tmp_path / "c.run", "bread Q0 bread 1 1.0 x\n")
    assert "does not answer 3 of the judged questions" in likewise(*arguments, "--against", tmp_path / "c.run").err
    write(tmp_path / "d.run", "other Q0 bread 1 1.0 x\n")
    likewise(*arguments, "--against", tmp_path / "d.run").failed(2, "answers none of the judged questions")


def test_a_run_is_written_even_if_nobody_reads_the_measures(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> None:
        raise BrokenPipeError

    likewise("index", tmp_path / "x.index", "-", stdin=lines({"id": "a", "text": "bread"}))
    write(tmp_path / "q.jsonl", lines({"_id": "q", "text": "bread"}))
    write(tmp_path / "r.tsv", "query-id\tcorpus-id\tscore\nq\ta\t1\n")
    monkeypatch.setattr("likewise.evaluation.commands.evaluate.say", closed)
    arguments = ["--queries", tmp_path / "q.jsonl", "--qrels", tmp_path / "r.tsv", "--run", tmp_path / "run"]
    likewise("evaluate", tmp_path / "x.index", *arguments)
    assert (tmp_path / "run").read_text().startswith("q Q0 a 1 ")


def test_what_was_measured_is_printed_also_where_the_run_cannot_be_written(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    folder = tmp_path / "x.index"
    likewise("index", folder, "-", stdin=lines({"id": "my paper", "text": "bread"}, {"id": "other", "text": "moon"}))
    write(tmp_path / "q.jsonl", lines({"_id": "q", "text": "bread"}))
    write(tmp_path / "r.tsv", "query-id\tcorpus-id\tscore\nq\tmy paper\t1\n")
    arguments = ["--queries", tmp_path / "q.jsonl", "--qrels", tmp_path / "r.tsv", "--run", tmp_path / "run"]
    said = likewise("evaluate", folder, *arguments)
    assert said.code == 2
    assert "nDCG@10  1.0000" in said.out
    assert "without white space" in said.err


def test_a_question_of_stop_words_alone_stops_no_other(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    folder = tmp_path / "x.index"
    likewise("index", folder, "-", stdin=lines({"id": "a", "text": "bread"}, {"id": "b", "text": "moon"}))
    write(tmp_path / "q.jsonl", lines({"_id": "q", "text": "what is it"}, {"_id": "r", "text": "moon"}))
    write(tmp_path / "r.tsv", "query-id\tcorpus-id\tscore\nq\ta\t1\nr\tb\t1\n")
    arguments = ["--queries", tmp_path / "q.jsonl", "--qrels", tmp_path / "r.tsv", "--mode", "words"]
    said = likewise("evaluate", folder, *arguments, "--per-query", "--json")
    assert [row["nDCG@10"] for row in said.json["per_query"].values()] == [0, 1]
    assert "too common to search by" in said.err
    said = likewise("search", folder, "-", "--mode", "words", stdin="moon\nwhat is it\nbread\n").succeeded()
    assert said.out.count(" 1  ") == 2
    assert "too common" in said.err
    assert likewise("search", folder, "what is it", "--mode", "words").code == 2
    assert "no document holds a word of the question" in likewise("search", folder, "xyzzy", "--mode", "words").out


def test_judged_files_are_found_from_any_folder(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / "notes" / "deep").mkdir(parents=True)
    for name in ("bread", "moon", "deep/river"):
        write(tmp_path / "home" / "notes" / f"{name}.txt", f"the {name}")
    monkeypatch.chdir(tmp_path / "home")
    likewise("index", tmp_path / "x.index", "notes")
    write(tmp_path / "q.jsonl", lines(*({"_id": name, "text": name} for name in ("bread", "moon", "river"))))
    rows = "bread\tbread.txt\t1\nmoon\tnotes/moon.txt\t1\nriver\tdeep/river.txt\t1\n"
    write(tmp_path / "r.tsv", f"query-id\tcorpus-id\tscore\n{rows}")
    for folder in (tmp_path / "home", tmp_path / "home" / "notes", tmp_path):
        monkeypatch.chdir(folder)
        said = likewise(
            "evaluate", tmp_path / "x.index", "--queries", tmp_path / "q.jsonl", "--qrels", tmp_path / "r.tsv", "--json"
        )
        assert (said.json["averages"]["nDCG@10"], said.json["missing"]) == (1, [])


def test_a_judged_name_of_several_files_is_reported(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "a.txt", f"bread {name}")
    likewise("index", tmp_path / "x.index", tmp_path / "one", tmp_path / "two")
    write(tmp_path / "q.jsonl", lines({"_id": "q", "text": "bread"}))
    write(tmp_path / "r.tsv", "query-id\tcorpus-id\tscore\nq\ta.txt\t1\n")
    said = likewise("evaluate", tmp_path / "x.index", "--queries", tmp_path / "q.jsonl", "--qrels", tmp_path / "r.tsv")
    named = f"1 judged document may be several files, such as 'a.txt' (taken as {tmp_path / 'one' / 'a.txt'})"
    assert named in said.succeeded().err
