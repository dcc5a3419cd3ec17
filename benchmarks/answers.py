"""How often "nothing here seems to answer this" is right: each collection gets its own questions and those of others.

`python -m benchmarks.answers [FOLDER]`; the default is $LIKEWISE_EVAL_DATA/data. Missed: own questions that were
reported as unanswered. False: questions of other collections that were not. Collections that overlap, such as the
languages of one collection, do not get each other's questions.
"""

from __future__ import annotations

import subprocess
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


def main() -> None:
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
