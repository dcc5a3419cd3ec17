"""Folding: copies among the first ten hits with and without it, and what each threshold folds rightly and wrongly.

`python -m benchmarks.folding [MODEL]`; needs $LIKEWISE_EVAL_DATA. Two collections: the PEPs, ranked by passages, with
the questions of peps_questions.tsv; and mail that is made of the answers of medquad-liveqa: every third answer is also
forwarded, answered with a whole quotation and a line, and sent to a second list with another footer.

Two passages are copies if the longer one contains at least half of the shorter one's sequences of eight words. Folding
counts single words, so it is judged by another measure than its own. The default MODEL is that of likewise.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.peps import questions as peps_questions
from indexer import Document, Index
from search import Hit, Query, Searcher
from search.evaluation.measures import read_qrels, read_queries
from search.families import NEAR, common_share, words_of

DEPTH = 30
SEQUENCE = 8
THRESHOLDS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
EXAMPLES = 3


def mail(data: Path) -> tuple[list[Document], list[str]]:
    """Return messages made of medquad-liveqa, and the judged questions."""
    folder, messages = data / "medquad-liveqa", []
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    for number, row in enumerate(map(json.loads, lines)):
        text, uri, title = row["text"], row["_id"], row.get("title", "")
        messages.append(Document(uri, text, title))
        if number % 3 == 0:
            quoted = "\n".join(f"> {line}" for line in text.splitlines())
            header = f"---------- Forwarded message ----------\nFrom: A. Sender\nSubject: {title}\n\n"
            footer = "\n\n--\nPosts to the list are archived. To leave it, write to its owner.\n"
            messages.append(Document(f"{uri}-forwarded", header + text, f"Fwd: {title}"))
            messages.append(Document(f"{uri}-answered", f"Thanks, this helped me a lot!\n\n{quoted}", f"Re: {title}"))
            messages.append(Document(f"{uri}-list", text + footer, title))
    queries = read_queries(folder / "queries.jsonl")
    return messages, [queries[query] for query in read_qrels(folder / "qrels" / "test.tsv", queries).judged]


def peps(data: Path) -> tuple[list[Document], list[str]]:
    """Return the PEPs and their questions."""
    files = sorted((data / "peps").glob("pep-*.rst"))
    documents = [Document(file.name, file.read_text(encoding="utf-8"), format="rst") for file in files]
    return documents, [question for question, _ in peps_questions()]


@lru_cache(100_000)
def sequences(text: str) -> frozenset[tuple[str, ...]]:
    words = [word for word in text.split() if any(character.isalnum() for character in word)]
    return frozenset(tuple(words[at : at + SEQUENCE]) for at in range(len(words) - SEQUENCE + 1))


def are_copies(first: str, second: str) -> bool:
    shorter, longer = sorted((sequences(first), sequences(second)), key=len)
    if not shorter:  # fewer than eight words
        return first.split() == second.split()
    return len(shorter & longer) >= len(shorter) / 2


def copies(hits: Sequence[Hit]) -> int:
    """Return how many hits are a copy of a hit before them."""
    return sum(any(are_copies(hit.text, other.text) for other in hits[:rank]) for rank, hit in enumerate(hits))


def measure(name: str, documents: list[Document], questions: list[str], model: str, passages: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Index.create(Path(folder) / "x.index", model=model) as index:
            index.add(documents)
        pairs = dict[tuple[str, str], float]()
        counts = dict.fromkeys((False, True), 0)
        with Searcher(Path(folder) / "x.index") as searcher:
            for question in questions:
                for fold in counts:
                    query = Query(question, mode="hybrid", passages=passages, fold=fold)
                    counts[fold] += copies(searcher.answer(query).hits)
                deep = searcher.answer(Query(question, DEPTH, mode="hybrid", passages=passages)).hits
                texts = [hit.text for hit in deep]
                pairs |= {pair: common_share(words_of(pair[0]), words_of(pair[1])) for pair in combinations(texts, 2)}
            size = len(searcher)
    print(
        f"\n{name}: {size} documents, {len(questions)} questions; copies among the first ten: "
        f"{counts[False] / len(questions):.2f} without folding, {counts[True] / len(questions):.2f} with it"
    )
    real = {pair for pair in pairs if are_copies(*pair)}
    print(f"Pairs of passages among the first {DEPTH} hits: {len(pairs)}, of which {len(real)} are copies\n")
    print("| threshold | copies folded | folded, and not copies |\n| --- | --- | --- |")
    for threshold in THRESHOLDS:
        folded = {pair for pair, share in pairs.items() if share >= threshold}
        print(f"| {threshold} | {len(folded & real) / max(1, len(real)):.1%} | {len(folded - real)} |")
    for title, wrong in (
        ("Folded, and not copies", [pair for pair in pairs if pairs[pair] >= NEAR and pair not in real]),
        ("Copies that are not folded", [pair for pair in real if pairs[pair] < NEAR]),
    ):
        print(f"\n{title}:")
        for first, second in sorted(wrong, key=lambda pair: abs(pairs[pair] - NEAR))[:EXAMPLES]:
            print(
                f"  {pairs[first, second]:.2f}  {' '.join(first.split())[:160]!r}\n"
                f"        {' '.join(second.split())[:160]!r}"
            )


def main() -> None:
    data, model = evaluation_data(), sys.argv[1] if len(sys.argv) > 1 else "all-MiniLM-L6-v2"
    print(f"{machine()}, {Path(model).name}; folding at {NEAR}")
    measure("Mail", *mail(data), model, False)
    measure("PEPs, passages", *peps(data), model, True)


if __name__ == "__main__":
    main()
