"""Ask in one language and find in another: the share of questions in each language that find their text in each other.

The texts are in six languages, ten in each, so the index needs a model that reads them all.

Prints:

    asked in  en texts  de texts  fr texts  es texts  ar texts  zh texts
    en            1.00      0.90      1.00      1.00      0.80      0.90
    de            0.90      1.00      0.80      0.80      0.70      0.80
    fr            0.90      0.90      1.00      1.00      0.90      0.90
    es            0.90      1.00      0.90      1.00      1.00      0.90
    ar            0.90      0.90      0.90      0.90      1.00      0.80
    zh            1.00      0.80      1.00      0.80      1.00      1.00
"""

import json
from collections import Counter
from pathlib import Path

from likewise import Document, Index, Searcher

LANGUAGES = ["en", "de", "fr", "es", "ar", "zh"]

index = Index.temporary("multilingual-e5-small")
index.add(
    Document(f"{language}-{file.stem}", file.read_text(encoding="utf-8"), metadata={"language": language})
    for language in LANGUAGES
    for file in sorted(Path("data/languages", language).glob("*.md"))
)
lines = Path("data/questions/languages/queries.jsonl").read_text(encoding="utf-8").splitlines()
questions = {question["_id"]: question["text"] for question in map(json.loads, lines)}

found = Counter[tuple[str, str]]()
with Searcher(index.address) as searcher:
    for question, hits in zip(questions, searcher.search_many(questions.values(), k=60), strict=True):
        asked, _, subject = question.partition("-")
        for language in LANGUAGES:
            first = next(hit.uri for hit in hits if hit.metadata["language"] == language)
            found[asked, language] += first == f"{language}-{subject}"
index.close()

print("asked in", *(f"{language} texts" for language in LANGUAGES), sep="  ")
for asked in LANGUAGES:
    print(f"{asked:8}", *(f"{found[asked, language] / 10:8.2f}" for language in LANGUAGES), sep="  ")
