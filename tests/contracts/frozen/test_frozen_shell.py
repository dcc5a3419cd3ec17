"""Every command with --json: its exit code, its members and values, as they were before the store was rebuilt.

Members may be added, never changed.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from frozen_models import make_model

COUNTS = ("seen", "indexed", "unchanged", "updated", "skipped", "failed", "pruned", "duplicates", "stale")
HIT = {
    *("uri", "title", "text", "start", "end", "score", "cosine", "page", "line", "heading", "path", "format"),
    *("modified", "metadata", "why"),
}
DOCUMENT = {"uri", "text", "title", "metadata", "path", "format", "modified", "sections"}

RECORDS = [
    ("bread", "Bread", "Knead the dough with flour. Water and flour and a hot oven.", {"year": 2020, "topic": "food"}),
    ("stale", "Stale bread", "The loaf is stale.", {"year": 2021, "topic": "food"}),
    ("moon", "The moon", "The moon and the tide of the sea.", {"year": 2022, "topic": "sky"}),
    ("star", "A star", "The sun is a star with light.", {"year": 2023, "topic": "sky", "tags": ["sun", "night"]}),
    ("tea", "Tea", "Boil the water. A leaf in a cup of hot tea.", {"year": 2024, "topic": "food"}),
    ("bank", "Bank", "The bank of the river. Fish in the river.", {"year": 2025, "topic": "money"}),
    ("tax", "Tax", "The tax is money to the bank.", {"year": 2026, "topic": "money", "deep": {"paid": True}}),
]
WALK = "Walk the dog. Run with the dog and the cat. " * 4
MARKDOWN = f"# A dog\n\n{WALK}\n\n## Sleep\n\nThe cat is in sleep and the dog is in sleep.\n"
QUERIES = [
    *(("q1", "knead dough"), ("q2", "stale loaf"), ("q3", "moon tide"), ("q4", "sun light"), ("q5", "leaf cup")),
    *(("q6", "river fish"), ("q7", "tax money"), ("q8", "flour oven"), ("q9", "boil tea"), ("q10", "the sea")),
]
ANSWERS = dict(
    zip(
        (query for query, _ in QUERIES),
        ("bread", "stale", "moon", "star", "tea", "bank", "tax", "bread", "tea", "moon"),
        strict=True,
    )
)

PASSAGES, TOKENS = 9, 168
WORDS_SCORE, HYBRID_SCORE, SIMILAR_SCORE = 4.8328, 2.4734, 0.6170

Shell = Callable[..., Any]


def counts(ended: Any) -> dict[str, int]:
    """The last line of `likewise index`; members may be added to it, as to all that --json prints."""
    return {name: ended.json[name] for name in COUNTS}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, shell: Shell) -> Path:
    """A folder with a model, sources, questions, and x.index made of them by the command line."""
    folder = tmp_path_factory.mktemp("world").resolve()
    make_model(folder / "tiny")
    (folder / "notes").mkdir()
    (folder / "notes" / "dog.md").write_text(MARKDOWN)
    (folder / "notes" / ".hidden.txt").write_text("hidden")
    lines = [json.dumps({"id": uri, "title": title, "text": text, **rest}) for uri, title, text, rest in RECORDS]
    (folder / "records.jsonl").write_text("\n".join([*lines, "not JSON", ""]))
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": i, "text": t}) + "\n" for i, t in QUERIES))
    rows = "".join(f"{query}\t{uri}\t1\n" for query, uri in ANSWERS.items())
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    ended = shell(
        *("index", folder / "x.index", folder / "notes", folder / "records.jsonl"),
        *("--model", folder / "tiny", "--precision", "float32", "--json", "--stream"),
    )
    assert ended.code == 1
    assert [len(ended.lines), ended.lines[0].keys()] == [2, {"committed"}]
    assert ended.lines[0]["committed"] == [str(folder / "notes" / "dog.md"), *(uri for uri, *_ in RECORDS)]
    assert counts(ended) == dict(zip(COUNTS, (10, 8, 0, 0, 1, 1, 0, 0, 0), strict=True))
    assert "1 failed, not valid JSON" in ended.err
    return folder


@pytest.fixture
def copy(world: Path, tmp_path: Path) -> Path:
    """A copy of x.index to write into."""
    shutil.copytree(world / "x.index", tmp_path / "copy.index")
    return tmp_path / "copy.index"


# index


def test_index_again_reads_no_file_and_changes_nothing(world: Path, copy: Path, shell: Shell) -> None:
    for options in ([], ["--rehash"]):
        ended = shell("index", copy, world / "notes", world / "records.jsonl", "--json", *options)
        assert (ended.code, counts(ended)) == (0, dict(zip(COUNTS, (10, 0, 8, 0, 1, 1, 0, 0, 0), strict=True)))
    assert shell("index", copy, world / "notes", "--json").code == 0


def test_index_takes_records_from_standard_input(copy: Path, shell: Shell) -> None:
    lines = [
        {"id": "bread", "title": "Bread", "text": "Another bread.", "year": 2020},
        {"id": "new", "text": "fish and the sea"},
        {"id": "moon", "title": "The moon", "text": "The moon and the tide of the sea.", "year": 1999},
    ]
    stdin = "".join(json.dumps(line) + "\n" for line in lines)
    ended = shell("index", copy, "-", "--json", stdin=stdin)
    assert (ended.code, counts(ended)) == (0, dict(zip(COUNTS, (3, 2, 0, 1, 0, 0, 0, 0, 0), strict=True)))
    assert shell("show", copy, "moon", "--json").json["metadata"] == {"year": 1999}
    assert shell("info", copy, "--json").json["documents"] == 9


def test_index_prunes_what_its_source_no_longer_has(world: Path, copy: Path, tmp_path: Path, shell: Shell) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("a.txt", "b.txt"):
        (notes / name).write_text(f"the sea {name}")
    assert shell("index", copy, notes, "--json").json["indexed"] == 2
    (notes / "b.txt").unlink()
    assert shell("index", copy, notes, "--json").json["stale"] == 1
    ended = shell("index", copy, notes, "--prune", "--json")
    assert (ended.code, ended.json["pruned"], ended.json["stale"]) == (0, 1, 0)
    (notes / "a.txt").unlink()
    assert shell("index", copy, notes, "--prune", "--json").json["pruned"] == 1
    assert shell("index", copy, tmp_path / "nothing", "--prune").code == 2
    assert shell("info", copy, "--json").json["documents"] == 8


def test_index_refuses_other_settings_and_rebuilds_with_them(world: Path, copy: Path, shell: Shell) -> None:
    refused = shell("index", copy, world / "notes", "--max-tokens", "32")
    assert (refused.code, "--rebuild" in refused.err) == (2, True)
    ended = shell("index", copy, world / "notes", "--max-tokens", "32", "--overlap", "0", "--rebuild", "--json")
    assert (ended.code, ended.json["indexed"]) == (0, 1)
    info = shell("info", copy, "--json").json
    assert (info["documents"], info["passage_settings"]) == (8, {"max_tokens": 32, "overlap": 0})


# search and similar


def test_search_dense(world: Path, shell: Shell) -> None:
    ended = shell("search", world / "x.index", "Stale bread The loaf is stale.", "-k", "3", "--json")
    found = ended.json
    assert ended.code == 0
    assert found.keys() >= {"query", "mode", "matched", "exact", "answered", "hits"}
    assert (found["query"], found["mode"]) == ("Stale bread The loaf is stale.", "dense")
    assert (found["matched"], found["exact"], found["answered"], len(found["hits"])) == (8, True, None, 3)
    assert all(hit.keys() >= HIT for hit in found["hits"])
    first = found["hits"][0]
    why = first.pop("why")
    assert (first.pop("score"), first.pop("cosine")) == pytest.approx((1.0, 1.0), abs=1e-3)
    expected = {
        "uri": "stale",
        "title": "Stale bread",
        "text": "The loaf is stale.",
        "start": 0,
        "end": 18,
        "page": None,
        "line": None,
        "heading": "",
        "path": str(world / "records.jsonl"),
        "format": "jsonl",
        "modified": "2023-11-14T22:13:20+00:00",
        "metadata": {"year": 2021, "topic": "food"},
    }
    assert {name: first[name] for name in expected} == expected
    assert why.keys() >= {"cosine", "bm25", "weights", "contributions", "words"}
    assert (why["bm25"], why["weights"]) == (None, {"cosine": 1.0})
    assert why["contributions"] == pytest.approx({"cosine": 1.0}, abs=1e-3)
    assert why["words"] == [{"text": "loaf", "start": 4, "end": 8}, {"text": "stale", "start": 12, "end": 17}]


def test_search_words_hybrid_and_explain(world: Path, shell: Shell) -> None:
    found = shell("search", world / "x.index", "the river fish", "--mode", "words", "--json").json
    assert (found["mode"], found["matched"], [hit["uri"] for hit in found["hits"]]) == ("words", 1, ["bank"])
    hit = found["hits"][0]
    assert (hit["cosine"], hit["why"]["cosine"]) == (None, None)
    assert hit["score"] == pytest.approx(WORDS_SCORE, abs=1e-3)
    found = shell("search", world / "x.index", "river fish", "--mode", "hybrid", "--explain", "-k", "2", "--json").json
    assert (found["mode"], found["matched"], found["hits"][0]["uri"]) == ("hybrid", 8, "bank")
    why = found["hits"][0]["why"]
    assert why.keys() >= {"cosine", "bm25", "weights", "contributions", "words", "sentence"}
    assert why["weights"].keys() == why["contributions"].keys() >= {"cosine", "words"}
    assert sum(why["weights"].values()) == pytest.approx(1)
    assert sum(why["contributions"].values()) == pytest.approx(found["hits"][0]["score"])
    assert why["sentence"].keys() >= {"text", "start", "end", "cosine"}
    assert why["sentence"]["text"] == "Fish in the river."
    assert found["hits"][0]["score"] == pytest.approx(HYBRID_SCORE, abs=2e-3)


def test_search_passages_and_filters_and_limits(world: Path, shell: Shell) -> None:
    index = world / "x.index"
    assert shell("search", index, "the dog", "--passages", "--json").json["matched"] == PASSAGES
    found = shell("search", index, "bank", "--where", 'topic = "money" and year >= 2026', "--json").json
    assert (found["matched"], [hit["uri"] for hit in found["hits"]]) == (1, ["tax"])
    assert shell("search", index, "bank", "--min-score", "2", "--json").json["hits"] == []
    assert shell("search", index, "bank", "--exact", "--json").json["exact"] is True
    assert [line["query"] for line in shell("search", index, "-", "--json", stdin="bank\n\ntea\n").lines] == [
        "bank",
        "tea",
    ]


def test_similar(world: Path, shell: Shell) -> None:
    found = shell("similar", world / "x.index", "tax", "-k", "2", "--json").json
    assert (found["query"], found["mode"], found["matched"], len(found["hits"])) == ("", "dense", 7, 2)
    assert [hit["uri"] for hit in found["hits"]] == ["moon", "bank"]
    assert found["hits"][0]["score"] == pytest.approx(SIMILAR_SCORE, abs=1e-3)


# show, list, info, check, compact


def test_show_and_list(world: Path, shell: Shell) -> None:
    shown = shell("show", world / "x.index", world / "notes" / "dog.md", "--json").json
    assert shown.keys() >= DOCUMENT
    assert (shown["text"], shown["format"], shown["title"]) == (MARKDOWN, "markdown", "A dog")
    assert shown["sections"] == [
        {"start": 0, "heading": "A dog", "page": None},
        {"start": MARKDOWN.index("## Sleep"), "heading": "A dog > Sleep", "page": None},
    ]
    listed = shell("list", world / "x.index", "--where", "exists tags or exists deep.paid", "--json").lines
    assert [row["uri"] for row in listed] == ["star", "tax"]
    assert listed[0].keys() >= DOCUMENT | {"characters"}
    assert (listed[0]["text"], listed[0]["characters"]) == (None, 29)
    assert listed[1]["metadata"] == {"year": 2026, "topic": "money", "deep": {"paid": True}}


def test_info_and_its_ledger(world: Path, shell: Shell) -> None:
    info = shell("info", world / "x.index", "--json").json
    assert info.keys() >= {
        *("documents", "passages", "tokens", "dimensions", "unsealed", "bytes", "format_version", "history"),
        *("segments", "fields", "model", "recipe", "passage_settings", "ledger"),
    }
    assert [info[name] for name in ("documents", "passages", "dimensions", "unsealed", "format_version")] == [
        *(8, PASSAGES, 32, 0, 1),
    ]
    assert info["tokens"] == TOKENS
    assert (info["model"], info["recipe"]["model"]) == (str(world / "tiny"), str(world / "tiny"))
    assert info["recipe"].keys() >= {
        *("model", "fingerprint", "dimensions", "max_tokens", "layers", "combine", "pooling", "query_prompt"),
        *("document_prompt", "normalize"),
    }
    assert info["passage_settings"] == {"max_tokens": 64, "overlap": 16}
    assert info["ledger"] == {"failed": 1, "indexed": 8, "skipped": 1}
    assert info["fields"] == {
        "deep.paid": ["boolean"],
        "size": ["number"],
        "tags": ["text"],
        "topic": ["text"],
        "year": ["number"],
    }
    assert info["segments"][0].keys() >= {"file", "kind", "count", "size", "sha256", "stamp", "parameters", "alive"}
    rows = shell("info", world / "x.index", "--ledger", "--json").lines
    assert all(row.keys() >= {"file", "uri", "state", "reason"} for row in rows)
    assert [(row["uri"], row["state"]) for row in rows if row["state"] != "indexed"] == [
        (str(world / "notes" / ".hidden.txt"), "skipped"),
        (f"{world / 'records.jsonl'}:8", "failed"),
    ]
    (failed,) = shell("info", world / "x.index", "--ledger", "failed", "--json").lines
    assert failed == {
        "file": str(world / "records.jsonl"),
        "uri": f"{world / 'records.jsonl'}:8",
        "state": "failed",
        "reason": "line 8: not valid JSON (Expecting value, column 1)",
    }


def test_check_and_repair(world: Path, copy: Path, shell: Shell) -> None:
    ended = shell("check", world / "x.index", "--recall", "--json")
    assert ended.code == 0
    assert {name: ended.json[name] for name in ("ok", "problems", "notes")} == {"ok": True, "problems": [], "notes": []}
    assert ended.json["recall"].keys() >= {"recall", "low", "high", "questions", "exact"}
    assert (ended.json["recall"]["recall"], ended.json["recall"]["exact"]) == (1.0, True)
    (segment,) = (copy / "segments").glob("*.faiss")
    segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    broken = shell("check", copy, "--json")
    assert (broken.code, broken.json["ok"], len(broken.json["problems"])) == (1, False, 1)
    assert shell("check", copy, "--repair", "--json").json["ok"] is True
    assert shell("check", copy, "--json").json == {"ok": True, "problems": [], "notes": []}


def test_compact_and_remove(copy: Path, shell: Shell) -> None:
    said = shell("compact", copy, "--kind", "exact", "--json")
    assert (said.code, said.json.keys()) == (0, {"bytes_before", "bytes"})
    assert shell("remove", copy, "tea", "tax", "--json").json == {"removed": 2}
    assert shell("remove", copy, "bread", "nothing").code == 2
    assert shell("info", copy, "--json").json["documents"] == 6


# evaluate, tune, expect, diff, pairs


def test_evaluate(world: Path, shell: Shell) -> None:
    options = ("--queries", world / "queries.jsonl", "--qrels", world / "qrels.tsv", "--json")
    said = shell("evaluate", world / "x.index", *options, "--mode", "words", "--per-query").json
    assert said.keys() >= {"queries", "k", "mode", "missing", "averages", "per_query"}
    assert (said["queries"], said["k"], said["mode"], said["missing"]) == (10, 100, "words", [])
    assert said["averages"] == pytest.approx(
        {"nDCG@10": 1.0, "AP": 1.0, "RR@10": 1.0, "R@100": 1.0, "P@10": 0.1}, abs=1e-9
    )
    assert said["per_query"].keys() == ANSWERS.keys()
    dense = shell("evaluate", world / "x.index", *options).json
    assert dense.keys() >= {"queries", "k", "mode", "missing", "averages"}
    assert dense["averages"]["R@100"] == 1.0


def test_tune(world: Path, copy: Path, shell: Shell) -> None:
    said = shell("tune", copy, "--queries", world / "queries.jsonl", "--qrels", world / "qrels.tsv", "--json")
    assert said.code == 0
    assert said.json.keys() >= {"lean", "before", "ndcg_before", "ndcg_held_out", "questions", "kept"}
    assert (said.json["before"], said.json["questions"]) == (0.0, 10)
    with closing(sqlite3.connect(copy / "catalog.db")) as catalog:
        learnt = catalog.execute("SELECT value FROM setting WHERE name = 'lean'").fetchone()
    assert learnt == ((str(said.json["lean"]),) if said.json["kept"] else None)


def test_pairs(world: Path, shell: Shell) -> None:
    said = shell("pairs", world / "x.index", "-n", "3", "--json").json
    assert said.keys() >= {"texts", "cut", "exact", "pairs", "repeated"}
    assert (said["texts"], said["cut"], said["exact"], len(said["pairs"])) == (PASSAGES, 0, True, 3)
    assert said["pairs"][0].keys() >= {"score", "first", "second"}
    assert said["pairs"][0]["first"].keys() >= {"uri", "text", "start", "count"}
    scores = [pair["score"] for pair in said["pairs"]]
    assert scores == sorted(scores, reverse=True)
    texts = world / "lines.txt"
    texts.write_text("the moon\nthe moon and the sea\nthe moon\na red fish\n")
    said = shell("pairs", texts, "--model", world / "tiny", "--json").json
    assert (said["texts"], len(said["pairs"]), said["repeated"]) == (
        3,
        3,
        [{"uri": "1", "text": "the moon", "start": 0, "count": 2}],
    )


# embed, tokens, export


def test_embed(world: Path, shell: Shell) -> None:
    said = shell("embed", "the moon", "a red fish", "--model", world / "tiny", "--precision", "float32", "--json").lines
    assert all(line.keys() >= {"id", "text", "recipe", "vector"} for line in said)
    assert [(line["id"], line["text"], line["recipe"]) for line in said] == [
        (0, "the moon", str(world / "tiny")),
        (1, "a red fish", str(world / "tiny")),
    ]
    assert math.hypot(*said[0]["vector"]) == pytest.approx(1, abs=1e-5)
    # Words are rows of +1 and -1; the vector is their mean, special tokens counted, of unit length.
    assert said[0]["vector"][:4] == pytest.approx([0.3015, 0.0, 0.0, -0.1508], abs=1e-3)
    written = shell("embed", "tea", "--model", world / "tiny", "-o", world / "tea.npy", "--json").json
    assert written.keys() >= {"output", "format", "texts", "cut", "dimensions", "histogram"}
    assert (written["format"], written["texts"], written["dimensions"]) == ("npy", 1, {str(world / "tiny"): 32})


def test_tokens(world: Path, shell: Shell) -> None:
    said = shell("tokens", "The moon glows", "a fish", "--model", world / "tiny", "--words", "--json").json
    assert said.keys() >= {"model", "max_tokens", "tokens", "words"}
    assert [token["token"] for token in said["tokens"]] == [
        *("[CLS]", "the", "moon", "[UNK]", "[SEP]", "a", "fish", "[SEP]")
    ]
    assert said["tokens"][5] == {
        "token": "a",
        "id": said["tokens"][5]["id"],
        "segment": 1,
        "mask": 1,
        "text": "a",
        "start": 0,
        "end": 1,
        "sequence": 1,
        "word": 3,
    }
    said = shell("tokens", "bank and bank", "--model", world / "tiny", "--similarity", "--json").json
    assert said.keys() >= {"model", "max_tokens", "tokens", "recipe", "compared", "cosines"}
    assert said["compared"] == [{"at": 1, "text": "bank"}, {"at": 3, "text": "bank"}]
    assert said["cosines"] == [pytest.approx([1, 1], abs=1e-3)] * 2


def test_export_and_take_in_again(world: Path, tmp_path: Path, shell: Shell) -> None:
    plain = shell("export", world / "x.index").lines
    assert plain[0].keys() >= {"likewise", "id", "text", "title", "metadata", "path", "format", "modified", "sections"}
    assert [line["id"] for line in plain] == [str(world / "notes" / "dog.md"), *(uri for uri, *_ in RECORDS)]
    exported = shell("export", world / "x.index", "--vectors")
    assert exported.lines[1].keys() >= {*plain[0], "recipe", "passages"}
    assert exported.lines[1]["passages"][0].keys() >= {"start", "end", "tokens", "heading", "page", "vector"}
    copy = tmp_path / "copy.index"
    shutil.copytree(world / "x.index", copy)
    shell("remove", copy, *(uri for uri, *_ in RECORDS))
    ended = shell("index", copy, "-", "--json", stdin=exported.out)
    assert (ended.code, counts(ended)) == (0, dict(zip(COUNTS, (8, 7, 1, 0, 0, 0, 0, 0, 0), strict=True)))
    assert shell("export", copy, "--vectors").lines[1:] == exported.lines[1:]


# errors


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["search", "INDEX", ""], 2, "empty"),
        (["search", "INDEX", "bank", "-k", "0"], 2, "k"),
        (["search", "INDEX", "the", "--mode", "words"], 2, "too common to search by"),
        (["search", "INDEX", "bank", "--where", "yaer = 1"], 2, "year"),
        (["search", "INDEX", "bank", "--where", "year >="], 2, "filter"),
        (["search", "INDEX", "bank", "--where", 'year = "x"'], 2, "year"),
        (["show", "INDEX", "nothing"], 2, "has no document"),
        (["similar", "INDEX", "nothing"], 2, "has no document"),
        (["info", "NOTHING"], 2, "is no index"),
        (["index", "INDEX", "NOTHING"], 2, "NOTHING"),
        (["index", "INDEX", "NOTES", "--model", "NOTHING"], 2, "NOTHING"),
        (["index"], 2, "INDEX"),
        (["nonsense"], 2, "nonsense"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_one_line_and_print_nothing_on_the_output(
    world: Path, shell: Shell, arguments: list[str], code: int, says: str
) -> None:
    places = {"INDEX": world / "x.index", "NOTHING": world / "NOTHING", "NOTES": world / "notes"}
    ended = shell(*(places.get(argument, argument) for argument in arguments))
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err


def test_a_second_writer_does_not_wait_where_it_is_told_so(world: Path, copy: Path, shell: Shell) -> None:
    with (copy / "LOCK").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (
            ["index", copy, world / "notes"],
            ["remove", copy, "tea"],
            ["compact", copy],
            ["check", copy, "--repair"],
        ):
            ended = shell(*command, "--no-wait")
            assert (ended.code, "is being written by process" in ended.err) == (3, True), command
        assert shell("search", copy, "tea", "--mode", "words", "--json").json["matched"] == 1
        assert shell("info", copy).code == 0
    assert shell("remove", copy, "tea", "--no-wait").code == 0


def test_the_index_is_named_by_an_option_or_the_environment(
    world: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell("info", "--index", world / "x.index", "--json").json["documents"] == 8
    monkeypatch.setenv("LIKEWISE_INDEX", str(world / "x.index"))
    assert shell("info", "--json").json["documents"] == 8


def test_the_shell_has_these_commands(shell: Shell) -> None:
    said = shell("--help")
    assert said.code == 0
    for command in (
        *("index", "search", "similar", "show", "list", "remove", "info", "check", "compact", "evaluate", "compare"),
        *("embed", "tokens", "model", "pairs", "compile", "tune", "export"),
    ):
        assert f"\n  {command} " in said.out, command
