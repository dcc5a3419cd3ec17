"""How much of the right text do the first five passages hold? Sizes and overlaps against reference spans.

Data and measure: B. Smith and A. Troynikov, "Evaluating Chunking Strategies for Retrieval", Chroma technical
report, July 2024, https://research.trychroma.com/evaluating-chunking (5 long documents, 472 questions). Reads
the folder chunking-eval under $LIKEWISE_EVAL_DATA/data; without it, says so and measures nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer.encoders.recipes.port import Encoder
from indexer.passages.cut import PassageSettings, cut, embedded_texts
from indexer.records import Document
from indexer.sources.readers import markdown

RETRIEVED = 5
SETTINGS = ((128, 0), (128, 32), (192, 0), (192, 48), (256, 0), (256, 32), (256, 64), (256, 128))
"""(tokens of a passage, tokens of overlap), counted by the model's own tokenizer, special tokens included."""


class Excerpt(NamedTuple):
    """`start` and `end` are code points of the document, the end excluded."""

    document: str
    start: int
    end: int


class Value(NamedTuple):
    """Mean and standard deviation (of the population, as in the report) over the questions."""

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    references: tuple[Excerpt, ...]


def passages(document: Document, encoder: Encoder, max_tokens: int, overlap: int) -> list[tuple[Excerpt, str]]:
    """Each passage as indexing cuts it, and what is embedded for it: its heading path and text."""
    (spans,) = cut([document], encoder, PassageSettings(max_tokens, overlap))
    texts = embedded_texts(document, spans)
    return [(Excerpt(document.uri, span.start, span.end), text) for span, text in zip(spans, texts, strict=True)]


def score(
    retrieved: Sequence[Sequence[Excerpt]], references: Sequence[Sequence[Excerpt]]
) -> tuple[Value, Value, Value]:
    """Recall, precision and intersection over union of characters, as the report defines them.

    A character found twice counts once above the line and twice below, so overlap costs precision and IoU; a
    passage of another document counts below the line only. IoU = found / (retrieved + references missed).

    Args:
        retrieved: the passages returned for each question, in any order.
        references: the spans that answer each question, disjoint.
    """
    rows = []
    for passages_, spans in zip(retrieved, references, strict=True):
        wanted = sum(span.end - span.start for span in spans)
        fetched = sum(passage.end - passage.start for passage in passages_)
        found = sum(_covered(span, passages_) for span in spans)
        rows.append((found / wanted, found / fetched if fetched else 0.0, found / (fetched + wanted - found)))
    means, deviations = np.mean(rows, axis=0), np.std(rows, axis=0)
    recall, precision, iou = (Value(float(m), float(d)) for m, d in zip(means, deviations, strict=True))
    return recall, precision, iou


def _covered(span: Excerpt, passages_: Iterable[Excerpt]) -> int:
    """Characters of the span that lie in at least one passage."""
    covered, reached = 0, span.start
    for _, start, end in sorted(passage for passage in passages_ if passage.document == span.document):
        left, right = max(start, reached), min(end, span.end)
        if left < right:
            covered, reached = covered + right - left, right
    return covered


def read(folder: Path) -> tuple[dict[str, str], list[Question]]:
    """The documents by name, and the questions with their spans."""
    # Decoded from bytes: the spans count line ends as they stand in the file.
    documents = {path.stem: path.read_bytes().decode() for path in sorted((folder / "corpora").glob("*.md"))}
    questions = []
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        places = tuple(Excerpt(row["corpus_id"], span["start"], span["end"]) for span in row["references"])
        questions.append(Question(row["text"], places))
    return documents, questions


def main() -> None:
    data = evaluation_data()
    from indexer.encoders import load_encoder

    texts, questions = read(data / "chunking-eval")
    documents = [
        Document(name, text, sections=markdown.read(text).sections, format="markdown") for name, text in texts.items()
    ]
    encoder = load_encoder("all-MiniLM-L6-v2")
    asked = encoder.encode([question.text for question in questions], role="query", truncate=True)
    print(f"{machine()}; {len(questions)} questions, {RETRIEVED} passages retrieved\n")
    print("| tokens | overlap | passages | characters | recall | precision | IoU |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for max_tokens, overlap in SETTINGS:
        found = [pair for document in documents for pair in passages(document, encoder, max_tokens, overlap)]
        places = [place for place, _ in found]
        vectors = encoder.encode([text for _, text in found])
        best = np.argsort(-(asked @ vectors.T), axis=1, kind="stable")[:, :RETRIEVED]
        values = score([[places[i] for i in row] for row in best], [question.references for question in questions])
        cells = " | ".join(f"{100 * value.mean:.1f} ± {100 * value.deviation:.1f}" for value in values)
        length = np.mean([place.end - place.start for place in places])
        print(f"| {max_tokens} | {overlap} | {len(places)} | {length:.0f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
