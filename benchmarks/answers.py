"""How often "nothing here seems to answer this" is right: each collection gets its own questions and those of others.

`python -m benchmarks.answers [FOLDER]`; the default is $LIKEWISE_EVAL_DATA/data. Missed: own questions that were
reported as unanswered. False: questions of other collections that were not. Collections that overlap, such as the
languages of one collection, do not get each other's questions.

`python -m benchmarks.answers halves FOLDER MODEL` indexes one half of each collection below FOLDER, and asks the
questions of this half and of the other. Five documents in a row belong to one half: those of an article in XQuAD.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.data import folder_asked
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE, collections
from indexer.stores.addresses.open import open_store
from likewise.evaluation.measures import read_qrels, read_queries
from search import Searcher
from search.query.query import Mode

_ASKED = 200
_MODES: tuple[Mode, ...] = ("dense", "hybrid")


def questions(collection: Path) -> list[str]:
    queries = read_queries(collection / "queries.jsonl")
    return [queries[query] for query in read_qrels(collection / "qrels" / "test.tsv", queries).judged][:_ASKED]


def halves(folder: Path, model: str) -> None:
    """Print the table of halves."""
    print(f"{machine()}\n\n| half of | {' | '.join(f'missed, {mode} | caught, {mode}' for mode in _MODES)} |")
    print("| --- " * (1 + 2 * len(_MODES)) + "|")
    for collection in collections(folder):
        rows = (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        inside = [row for number, row in enumerate(rows) if number // 5 % 2 == 0]
        uris = {json.loads(row)["_id"] for row in inside}
        queries = read_queries(collection / "queries.jsonl")
        judgments = read_qrels(collection / "qrels" / "test.tsv", queries)
        own, others = list[str](), list[str]()
        for query in judgments.judged:
            right = {uri for uri, grade in judgments.grades[query].items() if grade > 0}
            (own if right & uris else others).append(queries[query])
        with tempfile.TemporaryDirectory() as temporary:
            index, half = Path(temporary) / "bench.index", Path(temporary) / "half.jsonl"
            half.write_text("".join(inside), encoding="utf-8")
            subprocess.run([LIKEWISE, "index", index, half, "--model", model], check=True, capture_output=True)
            with Searcher(index) as searcher:
                cells = []
                for mode in _MODES:
                    for asked in (own, others):
                        hits = searcher.search_many(asked[:: max(1, len(asked) // _ASKED)], 10, mode=mode)
                        cells.append(f"{sum(each.answered is False for each in hits) / len(hits):.1%}")
        print(f"| {collection.name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["halves"]:
        halves(Path(sys.argv[2]), sys.argv[3])
        return
    folder = folder_asked()
    found = collections(folder)
    asked = {collection: questions(collection) for collection in found}
    names = ["collection", "threshold", *(f"{rate}, {mode}" for mode in _MODES for rate in ("missed", "false"))]
    print(f"{machine()}\n\n| {' | '.join(names)} |\n{'| --- ' * len(names)}|")
    for collection in found:
        with tempfile.TemporaryDirectory() as temporary:
            index = str(Path(temporary) / "bench.index")
            command = [LIKEWISE, "index", index, str(collection / "corpus.jsonl")]
            subprocess.run(command, check=True, capture_output=True)
            with closing(open_store(index)) as store, store.snapshot() as snapshot:
                known = snapshot.settings.calibration
            with Searcher(index) as searcher:
                strange = [
                    question
                    for other in found
                    if other.relative_to(folder).parts[0] != collection.relative_to(folder).parts[0]
                    for question in asked[other]
                ]
                cells = [str(collection.relative_to(folder)), f"{known.threshold:.2f}" if known else "none"]
                for mode in _MODES:
                    own, others = (searcher.search_many(some, 1, mode=mode) for some in (asked[collection], strange))
                    missed = sum(hits.answered is False for hits in own) / len(own)
                    false = sum(hits.answered is not False for hits in others) / len(others)
                    cells += [f"{missed:.1%}", f"{false:.1%}"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
