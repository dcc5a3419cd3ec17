import csv
import json
from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

files = sorted(Path("data/collection").glob("*.jsonl"))
records = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
corpus = {record["_id"]: f"{record['title']} {record['text']}" for record in records}
with Path("data/questions/queries.jsonl").open(encoding="utf-8") as file:
    queries = {record["_id"]: record["text"] for record in map(json.loads, file)}
relevant: dict[str, set[str]] = {}
with Path("data/questions/qrels.tsv").open(encoding="utf-8") as file:
    for row in csv.DictReader(file, delimiter="\t"):
        if int(row["score"]) > 0:
            relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
evaluator = InformationRetrievalEvaluator(queries, corpus, relevant, ndcg_at_k=[10])
print(evaluator(SentenceTransformer("all-MiniLM-L6-v2"))["cosine_ndcg@10"])  # dense alone, without grades
