"""Evaluate and tune on judgments of your own: which mode answers your questions best?

`likewise evaluate` prints more measures, and `likewise tune` learns the weight of words in hybrid mode from judgments.

Prints:

    dense   nDCG@10 0.694
    words   nDCG@10 0.182
    hybrid  nDCG@10 0.692
"""

import json
from pathlib import Path
from typing import get_args

from likewise import Document, Index, Mode, Searcher
from likewise.evaluation.measures import evaluate, read_qrels, read_queries

files = sorted(Path("data/collection").glob("*.jsonl"))
records = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
questions = read_queries("data/questions/queries.jsonl")
qrels = read_qrels("data/questions/qrels.tsv", questions)

index = Index.temporary()
index.add(Document(record["_id"], record["text"], record["title"]) for record in records)
with Searcher(index.address) as searcher:
    for mode in get_args(Mode):
        answers = searcher.search_many([questions[query] for query in qrels.judged], k=100, mode=mode)
        run = {query: [(hit.uri, hit.score) for hit in hits] for query, hits in zip(qrels.judged, answers, strict=True)}
        print(f"{mode:6}  nDCG@10 {evaluate(run, qrels, ['nDCG@10']).averages['nDCG@10']:.3f}")
index.close()
