"""Judgments that people give on the page: which documents answer a question, in files for `evaluate` and `tune`.

They are two files in BEIR form in a folder beside the index, `papers.judgments` beside `papers.index`. The files are
not a part of the index, so the judgments stay if the index is rebuilt or replaced.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from indexer.errors import BadInput, storage_error
from indexer.stores.addresses.open import is_uri
from search.served import ServedIndex
from search.server.problems import Problem

QUERIES, QRELS = "queries.jsonl", "qrels.tsv"
_HEADER = "query-id\tcorpus-id\tscore"
_ID_DIGITS = 12
"""Number of hexadecimal digits of a question's id. Of 500 collections with a million questions each, one has two
questions with the same id."""


class Judgments:
    """The judgments of one index."""

    def __init__(self, served: ServedIndex) -> None:
        """Name the folder, which is made with the first judgment.

        Raises:
            Problem: 404, the index is not in a folder.
        """
        if is_uri(served.address):
            raise Problem(404, "no-judgments", "judgments are kept beside a folder, and this index is in a database")
        index = Path(served.address).absolute()
        self.folder = index.with_name(f"{index.name.removesuffix('.index')}.judgments")

    def of(self, question: str) -> dict[str, int]:
        """Return the grade of each document that was judged for a question."""
        queries, grades = self._read()
        return dict(grades.get(_id_of(question, queries), {}))

    def judge(self, question: str, uri: str, grade: int | None) -> dict[str, int]:
        """Write a judgment, durable when this returns.

        Args:
            grade: 1 for a document that answers, 0 for a document that does not answer; None removes the judgment.

        Returns:
            The grade of each document that is judged for the question now.

        Raises:
            Problem: 400, the uri cannot be written into a table.
            StorageError: the disk refuses.
        """
        if uri != uri.strip() or any(mark in uri for mark in "\t\n\r"):
            raise Problem(400, "bad-input", "this uri cannot be judged: it has white space that ends a column")
        try:
            with self._locked():
                queries, grades = self._read()
                query = _id_of(question, queries)
                of_question = grades.setdefault(query, {})
                of_question.pop(uri, None)
                if grade is not None:
                    of_question[uri] = grade
                    queries[query] = question.strip()
                self._write(queries, grades)
                return dict(of_question)
        except OSError as error:
            raise storage_error(f"{self.folder}: {error}", error) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read(self) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
        """Return the questions by id, and the grades of their documents.

        Raises:
            Problem: 500, the files cannot be read as judgments.
        """
        from search.evaluation.measures import read_qrels, read_queries

        if not (self.folder / QRELS).exists():
            return {}, {}
        try:
            queries = read_queries(self.folder / QUERIES)
            read = read_qrels(self.folder / QRELS, queries)
        except BadInput as error:  # somebody has edited the file; its path must not reach a client
            detail = f"the judgments cannot be read: {str(error).replace(str(self.folder), self.folder.name)}"
            raise Problem(500, "judgments-damaged", detail) from error
        return queries, {query: dict(of_query) for query, of_query in read.grades.items()}

    def _write(self, queries: Mapping[str, str], grades: Mapping[str, Mapping[str, int]]) -> None:
        """Replace both files. The questions come first: a judgment of an unknown question would be an error."""
        rows = [f"{query}\t{uri}\t{grade}" for query, judged in grades.items() for uri, grade in judged.items()]
        if not rows:  # a file without judgments would be one, too
            (self.folder / QRELS).unlink(missing_ok=True)
            return
        lines = [json.dumps({"_id": query, "text": text}, ensure_ascii=False) for query, text in queries.items()]
        _replace(self.folder / QUERIES, lines)
        _replace(self.folder / QRELS, [_HEADER, *rows])


def _id_of(question: str, queries: Mapping[str, str]) -> str:
    """Return the id of a question: its id in the file, or else an id made from its text."""
    text = question.strip()
    known = next((query for query, other in queries.items() if other == text), None)
    return known or sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def _replace(path: Path, lines: list[str]) -> None:
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
