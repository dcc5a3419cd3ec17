"""The default models in several languages, and words in the language that an index finds in its texts.

`python -m benchmarks.languages [FOLDER]`; the default is $LIKEWISE_EVAL_DATA/data/xquad. Each folder below it is a
judged collection (BEIR form) named after its language. The same ids mean the same texts and questions in all of them.

Each model has two tables. The first asks each language in itself, also by dense search of sentence-transformers, which
ranks the same passages with the same weights. The second asks the questions of one language in the texts of another.
The last two tables compare `--language en` with `auto`, by words alone: one collection in an index, and all of them in
one index.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import collections
from indexer import Document, Index, load_encoder
from indexer.encoders.recipes.locate import DEFAULT_MODEL, MULTILINGUAL_MODEL, find_model
from indexer.languages.detect import languages_of
from indexer.passages.cut import cut, embedded_texts
from likewise.cache.cached_encoder import CachedEncoder
from likewise.cache.vector_cache import VectorCache
from likewise.evaluation.measures import Run, evaluate, read_qrels, read_queries
from search import Mode, Searcher

METRIC = "nDCG@10"
Pair = tuple[str, str]
"""The languages of the questions and of the documents."""


def documents(collection: Path, prefix: str = "") -> list[Document]:
    rows = [json.loads(line) for line in (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    return [Document(prefix + row["_id"], row["text"], row.get("title", "")) for row in rows]


class Questions:
    """The judged questions of one collection."""

    def __init__(self, collection: Path) -> None:
        queries = read_queries(collection / "queries.jsonl")
        self._qrels = read_qrels(collection / "qrels" / "test.tsv", queries)
        self.texts = [queries[query] for query in self._qrels.judged]

    def metric(self, rankings: list[list[tuple[str, float]]]) -> float:
        """Return the metric of one ranking per question."""
        run: Run = dict(zip(self._qrels.judged, rankings, strict=True))
        return evaluate(run, self._qrels, [METRIC]).averages[METRIC]

    def asked(self, searcher: Searcher, mode: Mode, prefix: str = "") -> float:
        """Return the metric of an index whose uris begin with the prefix if they are of this collection."""
        answers = searcher.search_many(self.texts, 10, mode=mode)
        return self.metric([[(hit.uri.removeprefix(prefix), hit.score) for hit in hits] for hits in answers])


def measured(folders: list[Path], model: str) -> dict[Pair, dict[str, float]]:
    """Return the metrics of a model by mode, for questions of each language in documents of each language."""
    questions = {path.name: Questions(path) for path in folders}
    values: dict[Pair, dict[str, float]] = {}
    passages: dict[str, list[tuple[str, str]]] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        cache = VectorCache(Path(folder) / "vectors.db")
        opened.callback(cache.close)
        encoder = CachedEncoder(load_encoder(model), cache, "auto")  # Each text is embedded once.
        for path in folders:
            with Index.create(Path(folder) / path.name, encoder) as index:
                index.add(documents(path))
                settings = index.passage_settings
            assert settings is not None
            spans = cut(documents(path), encoder, settings)
            texts = zip(documents(path), spans, strict=True)
            passages[path.name] = [(text.uri, part) for text, cuts in texts for part in embedded_texts(text, cuts)]
            searcher = opened.enter_context(Searcher(Path(folder) / path.name, encoder))
            for name, of_language in questions.items():
                modes: list[Mode] = ["words", "dense", "hybrid"] if name == path.name else ["dense", "hybrid"]
                values[name, path.name] = {mode: of_language.asked(searcher, mode) for mode in modes}
    for pair, metric in by_sentence_transformers(model, questions, passages).items():
        values[pair]["sentence-transformers"] = metric
    return values


def by_sentence_transformers(
    model: str, questions: dict[str, Questions], passages: dict[str, list[tuple[str, str]]]
) -> dict[Pair, float]:
    """Return the metric of dense search by sentence-transformers. A document has the score of its best passage.

    Args:
        passages: uri and text of each passage, by language.
    """
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(find_model(model)), device="cpu")
    asked = {name: plain.encode_query(of_language.texts) for name, of_language in questions.items()}
    values = {}
    for name, of_language in passages.items():
        rows = plain.encode_document([text for _, text in of_language])
        for language, vectors in asked.items():
            rankings = []
            for scores in vectors @ rows.T:
                best: dict[str, float] = {}
                for at in np.argsort(-scores, kind="stable"):
                    best.setdefault(of_language[at][0], float(scores[at]))
                rankings.append(list(best.items())[:10])
            values[language, name] = questions[language].metric(rankings)
    return values


def by_words(folders: list[Path], language: str) -> tuple[str, list[float]]:
    """Return the language of an index of all collections, and the metric of each by words."""
    with tempfile.TemporaryDirectory() as folder:
        with Index.create(Path(folder) / "bench.index", dimensions=2, language=language) as index:
            together = [document for path in folders for document in documents(path, f"{path.name}-")]
            random.Random(0).shuffle(together)
            index.add(together, vectors=np.ones((len(together), 2), np.float32))
            chosen = index.settings.language
        with Searcher(Path(folder) / "bench.index") as searcher:
            return chosen, [Questions(path).asked(searcher, "words", f"{path.name}-") for path in folders]


def print_row(*cells: str | float) -> None:
    print("|", " | ".join(f"{cell:.4f}" if isinstance(cell, float) else cell for cell in cells), "|", flush=True)


def print_head(*cells: str) -> None:
    print()
    print_row(*cells)
    print_row(*["---"] * len(cells))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else evaluation_data(" and no folder was given") / "xquad"
    folders = collections(folder)
    names = [path.name for path in folders]
    print(f"{machine()}\n\n{METRIC}", flush=True)
    ways = ("words", "dense", "sentence-transformers", "hybrid")
    for model in (DEFAULT_MODEL, MULTILINGUAL_MODEL):
        values = measured(folders, model)
        print_head(model, *ways)
        for name in names:
            print_row(name, *(values[name, name][way] for way in ways))
        print_head(f"{model}: questions, dense / hybrid", *(f"{name} texts" for name in names))
        for asked in names:
            row = [values[asked, name] for name in names]
            print_row(asked, *(f"{metrics['dense']:.4f} / {metrics['hybrid']:.4f}" for metrics in row))
        most = max(abs(metrics["dense"] - metrics["sentence-transformers"]) for metrics in values.values())
        print(f"\nThe largest difference of dense search to sentence-transformers is {most:.4f}.", flush=True)
    print_head("texts, by words", "en", "auto", "finding the language")
    for path in folders:
        texts = [document.text for document in documents(path)]
        start = time.perf_counter()
        languages_of(texts)
        seconds = time.perf_counter() - start
        print_row(path.name, *(by_words([path], language)[1][0] for language in ("en", "auto")), f"{seconds:.2f} s")
    print_head(f"one index of {', '.join(names)}, by words", *names)
    for language in ("en", "de", "ar", "none", "auto"):
        chosen, of_each = by_words(folders, language)
        print_row(language if chosen == language else f"{language} ({chosen})", *of_each)


if __name__ == "__main__":
    main()
