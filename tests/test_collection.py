"""The sample collections: their sizes, their judgments, and questions that share no word with their answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from indexer.languages.detect import languages_of
from likewise.evaluation.measures import read_qrels, read_queries

DATA = Path(__file__).parents[1] / "data"
COLLECTION = DATA / "collection"
LANGUAGES = DATA / "languages"
QUERIES = read_queries(DATA / "questions" / "queries.jsonl")
QRELS = read_qrels(DATA / "questions" / "qrels.tsv", QUERIES)

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
a about after again all always am an and any are as at be because been before being but by can cannot
could did do does doing don down during each few for from further get gets getting had has have having he
her here him his how i if in into is it its itself just let like many may me might more most much must my
myself no nor not now of off often on once one only or other our out over own s same she should so some
such t than that the their them then there these they this those though through to too under until up
upon us very was we were what when whenever where whether which while who why will with within without
would you your
""",
    )
)
ENDINGS = ("ingly", "ings", "ing", "edly", "ied", "ies", "ed", "ers", "er", "ly", "es", "s", "e", "y")


def stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def content_words(text: str) -> set[str]:
    words = re.findall(r"[a-z0-9]+", text.lower().replace("'s", ""))
    return {stem(word) for word in words if word not in STOP_WORDS}


def records() -> list[dict[str, object]]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(COLLECTION.glob("*.jsonl"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def documents() -> dict[str, str]:
    files = [path for path in COLLECTION.rglob("*") if path.suffix in {".md", ".txt"}]
    texts = {path.relative_to(COLLECTION).as_posix(): path.read_text(encoding="utf-8") for path in files}
    return texts | {str(record["_id"]): f"{record['title']} {record['text']}" for record in records()}


def test_sizes() -> None:
    all_records = records()
    assert len({record["_id"] for record in all_records}) == len(all_records) == 140
    assert len({record["topic"] for record in all_records}) == 20
    sections = sum(len(re.findall(r"^## ", path.read_text(), re.M)) for path in COLLECTION.rglob("*.md"))
    paragraphs = sum(path.read_text().strip().count("\n\n") for path in COLLECTION.rglob("*.txt"))
    assert (len(list(COLLECTION.rglob("*.md"))), sections) == (10, 36)
    assert (len(list(COLLECTION.rglob("*.txt"))), paragraphs) == (5, 15)


def test_records_have_typed_metadata() -> None:
    for record in records():
        assert set(record) == {"_id", "title", "text", "topic", "year", "level", "tags"}
        assert isinstance(record["year"], int)
        assert 2019 <= record["year"] <= 2025
        assert record["level"] in {"beginner", "intermediate", "advanced"}
        assert isinstance(record["tags"], list)
        assert record["tags"]


def test_every_question_has_a_best_document_that_exists() -> None:
    known = documents()
    assert len(QUERIES) >= 60
    assert set(QRELS.judged) == set(QUERIES)
    assert [grades for grades in QRELS.grades.values() if max(grades.values()) != 2] == []
    assert {document for grades in QRELS.grades.values() for document in grades} <= set(known)


def test_many_questions_share_no_content_word_with_their_documents() -> None:
    words = {uri: content_words(text) for uri, text in documents().items()}
    by_meaning = [
        query
        for query, text in QUERIES.items()
        if not any(content_words(text) & words[document] for document in QRELS.grades[query])
    ]
    assert len(by_meaning) >= 40


def test_ten_texts_and_ten_questions_in_each_of_six_languages() -> None:
    texts = {path.relative_to(LANGUAGES).as_posix() for path in LANGUAGES.rglob("*.md")}
    languages, subjects = zip(*(text.removesuffix(".md").split("/") for text in texts), strict=True)
    assert (len(set(languages)), len(set(subjects)), len(texts)) == (6, 10, 60)
    folder = DATA / "questions" / "languages"
    queries = read_queries(folder / "queries.jsonl")
    assert set(queries) == {text.removesuffix(".md").replace("/", "-") for text in texts}
    for query, grades in read_qrels(folder / "qrels.tsv", queries).grades.items():
        subject = query.partition("-")[2]
        assert grades == {f"{language}/{subject}.md": 1 for language in languages}


@pytest.mark.slow
def test_every_text_is_in_the_language_of_its_folder() -> None:
    for folder in LANGUAGES.iterdir():
        (language,) = languages_of([path.read_text(encoding="utf-8") for path in folder.glob("*.md")])
        assert language == folder.name
