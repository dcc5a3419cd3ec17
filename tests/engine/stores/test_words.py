"""Ranking by words against BM25 computed here, with filters, removals, and rows that no writer has caught up with."""

from __future__ import annotations

import math
import os
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hardware import needs_root, needs_setpriv
from numpy.typing import NDArray
from opened import snapshot_of, store_of, writer_of

from indexer import Document, Index
from indexer.errors import BadInput
from indexer.filters.parse import parse
from indexer.passages.cut import Span
from indexer.settings import Settings
from indexer.stores.addresses.open import create_store, open_store
from indexer.stores.hashes import row_hash
from indexer.stores.port import Batch, CheckReport, EmbeddedDocument, Hashes, Unit
from indexer.stores.words.analysis import Analysis

WORDS = [f"word{number}" for number in range(120)]
DIMENSIONS = 4


def text_of(chance: random.Random) -> str:
    """Frequent and rare words, as in a language."""
    return " ".join(WORDS[min(119, int(chance.paretovariate(0.6)))] for _ in range(chance.randint(3, 60)))


def fieldnorm(length: int) -> int:
    """A length as Lucene and tantivy keep it in a byte: exact up to 40, then with four significant bits."""
    if length <= 40:
        return length
    shift = (length - 24).bit_length() - 4
    return ((length - 24) >> shift << shift) + 24


@cache
def _stems(text: str) -> list[str]:
    analysis = Analysis("en")
    return analysis.stemmed.analyze(" ".join(analysis.words(text)))


@cache
def _terms(question: str) -> list[str]:
    return list(Analysis("en").terms(question))


class Reference:
    """BM25 of texts, by the book."""

    def __init__(self, texts: dict[int, str]) -> None:
        self.texts = {id_: Counter(_stems(text)) for id_, text in texts.items()}
        self.holding = Counter(term for count in self.texts.values() for term in count)
        self.mean = sum(count.total() for count in self.texts.values()) / max(1, len(texts))

    def score(self, id_: int, question: str) -> float:
        count, score = self.texts[id_], 0.0
        damping = 1.2 * (0.25 + 0.75 * fieldnorm(count.total()) / self.mean)
        for term in _terms(question):
            holding = self.holding[term]
            idf = math.log(1 + (len(self.texts) - holding + 0.5) / (holding + 0.5))
            score += idf * 2.2 * count[term] / (count[term] + damping)
        return score

    def ranked(self, question: str, allowed: set[int]) -> list[tuple[int, float]]:
        scores = [(id_, round(self.score(id_, question), 4)) for id_ in allowed]
        return sorted(((id_, score) for id_, score in scores if score > 0), key=lambda pair: (-pair[1], pair[0]))


def embedded(uri: str, text: str, **metadata: int) -> EmbeddedDocument:
    """A document in passages of up to 100 characters that overlap by 20."""
    spans = tuple(Span(at, min(at + 100, len(text))) for at in range(0, len(text), 80))
    rows = np.random.default_rng(len(text)).normal(size=(len(spans), DIMENSIONS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    document = Document(uri, text, f"title {uri}", metadata)
    return EmbeddedDocument(document, Hashes(uri.encode(), row_hash(document)), spans, rows)


class Kept:
    """A store, and what it should hold."""

    def __init__(self, folder: Path) -> None:
        self.store = create_store(folder, Settings(DIMENSIONS))
        self.texts: dict[str, tuple[str, int]] = {}
        self.chance = random.Random(5)

    def put(self, numbers: list[int]) -> None:
        texts = {f"d{number}": (text_of(self.chance), number) for number in numbers}
        writer_of(self).put(Batch([embedded(uri, text, n=number) for uri, (text, number) in texts.items()]))
        self.texts |= texts

    def remove(self, numbers: list[int]) -> None:
        assert writer_of(self).remove([f"d{number}" for number in numbers]) == len(numbers)
        for number in numbers:
            del self.texts[f"d{number}"]

    def scores(self, question: str, ids: NDArray[np.int64], unit: Unit) -> NDArray[np.float32]:
        with self.store._views.view() as view:
            words = self.store._words.words_of(view)
            return words.score(words.analysis.question_terms(question), ids, unit)

    def holds_what_the_book_says(self, where: Callable[[int], bool] | None = None, filter_: str | None = None) -> None:
        condition = parse(filter_) if filter_ else None
        with self.store._views.view() as view:
            rows = view.connection.execute(
                "SELECT p.id, p.document_id, d.uri, p.start, p.stop FROM passage p JOIN document d"
                " ON d.id = p.document_id ORDER BY p.id"
            ).fetchall()
        first: dict[int, int] = {}
        owner, whole, parts, allowed = {}, {}, {}, set()
        for id_, document, uri, start, end in rows:
            text, number = self.texts[uri]
            owner[id_] = document
            parts[id_] = f"title {uri} {text[start:end]}"
            whole[first.setdefault(document, id_)] = f"title {uri} {text}"
            if where is None or where(number):
                allowed.add(id_)
        by_document, by_passage = Reference(whole), Reference(parts)
        for question in ("word0 word3", "word7 word50 word119", "title d7 word2", "word99"):
            ranking = snapshot_of(self).words(question, 10, condition)
            expected = by_document.ranked(question, allowed & whole.keys())
            assert ranking.matched == len(expected), question
            assert [first[owner[id_]] for id_ in ranking.passages.tolist()] == [id_ for id_, _ in expected[:10]]
            np.testing.assert_allclose(ranking.scores, [score for _, score in expected[:10]], atol=2e-4)
            for id_ in ranking.passages.tolist():
                own = [(by_passage.score(other, question), -other) for other in owner if owner[other] == owner[id_]]
                assert by_passage.score(id_, question) == pytest.approx(max(own)[0], abs=2e-4)
            ranking = snapshot_of(self).words(question, 10, condition, "passage")
            expected = by_passage.ranked(question, allowed)
            assert (ranking.matched, len(ranking.passages)) == (len(expected), min(10, len(expected)))
            np.testing.assert_allclose(ranking.scores, [score for _, score in expected[:10]], atol=2e-4)
            ids = np.array(sorted(owner)[:150:2])
            given = [by_passage.score(id_, question) for id_ in ids.tolist()]
            np.testing.assert_allclose(self.scores(question, ids, "passage"), given, atol=2e-4)
            documents = np.array(list(first)[:40])
            given = [by_document.score(first[id_], question) for id_ in documents.tolist()]
            np.testing.assert_allclose(self.scores(question, documents, "document"), given, atol=2e-4)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path / "x.index")
    yield kept
    store_of(kept).close()


def test_the_ranking_is_that_of_bm25_however_the_rows_came_and_went(kept: Kept) -> None:
    kept.put(list(range(300)))
    kept.holds_what_the_book_says()  # in memory: nothing is written before a run ends
    assert not (Path(store_of(kept).address) / "words").exists()
    writer_of(kept).settle()
    kept.holds_what_the_book_says()
    kept.put(list(range(300, 340)))  # a tail
    kept.holds_what_the_book_says()
    kept.remove([3, 4, 310])
    kept.put([5, 6, 320])  # replaced
    kept.holds_what_the_book_says()
    writer_of(kept).settle()  # caught up, with the dead still in it
    kept.holds_what_the_book_says()
    kept.remove(list(range(100, 250)))
    kept.holds_what_the_book_says()
    writer_of(kept).settle()  # worn out: written anew
    kept.holds_what_the_book_says()
    kept.put([400])
    writer_of(kept).compact()
    kept.holds_what_the_book_says()
    assert len(list((Path(store_of(kept).address) / "words").iterdir())) == 1
    assert snapshot_of(kept).check(None) == CheckReport()


@pytest.mark.parametrize("share", [1, 150, *(pytest.param(share, marks=pytest.mark.slow) for share in (3, 299))])
def test_filters_are_honoured_exactly(kept: Kept, share: int) -> None:
    kept.put(list(range(300)))
    writer_of(kept).settle()
    kept.put(list(range(300, 310)))
    kept.holds_what_the_book_says(lambda number: number < share, f"n < {share}")
    kept.holds_what_the_book_says(lambda number: number >= share, f"n >= {share}")
    kept.holds_what_the_book_says(lambda number: False, "n < 0")


def test_many_ids_are_looked_up_by_their_bounds_or_as_a_set(kept: Kept) -> None:
    kept.put(list(range(700)))
    kept.holds_what_the_book_says(lambda number: number < 300, "n < 300")
    scattered = ", ".join(str(number) for number in range(0, 700, 3))
    kept.holds_what_the_book_says(lambda number: number % 3 == 0, f"n in ({scattered})")
    kept.holds_what_the_book_says(lambda number: number % 3 != 0, f"not n in ({scattered})")


def test_equal_documents_come_in_the_order_they_were_added_and_all_are_counted(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        rows = np.ones((500, 2), np.float32)
        index.add([Document(f"d{i}", "the same text") for i in range(500)], vectors=rows)
        for change in (lambda: None, writer_of(index).settle, index.compact):
            change()
            found = snapshot_of(index).words("text", 7)
            assert (found.passages.tolist(), found.matched) == (list(range(1, 8)), 500)


def test_what_another_process_commits_is_found_at_once_and_what_it_removes_is_not(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        reader = open_store(tmp_path / "x.index")
        row = np.ones((1, 2), np.float32)
        for number in range(15):
            index.add([Document(f"d{number}", f"common unique{number}")], vectors=row)
            assert snapshot_of(reader).words(f"unique{number}", 5).matched == 1
            if number % 7 == 3:
                writer_of(index).settle()
            if number % 5 == 4:
                index.remove([f"d{number}"])
                with pytest.raises(IndexError):
                    snapshot_of(reader).passages_by_id(
                        snapshot_of(reader).words(f"unique{number}", 5).passages.tolist()
                    )[0]
            assert snapshot_of(reader).words("common", 100).matched == len(index)
        reader.close()


def test_a_reader_keeps_to_the_commit_it_began_with(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        row = np.ones((1, 2), np.float32)
        index.add([Document("a", "apple")], vectors=row)
        other = open_store(tmp_path / "x.index")
        with other.writer() as writer, store_of(index).snapshot() as snapshot:
            later = EmbeddedDocument(Document("b", "apple"), Hashes(b"", b""), (Span(0, 5),), row / np.sqrt(2))
            writer.put(Batch([later]))
            assert snapshot_of(other).words("apple", 5).matched == 2
            assert snapshot.words("apple", 5).matched == 1
            writer.settle()
            assert snapshot.words("apple", 5).matched == 1
        assert snapshot_of(index).words("apple", 5).matched == 2
        other.close()


def test_words_of_a_copy_that_is_put_back_are_its_own(tmp_path: Path) -> None:
    row = np.eye(DIMENSIONS, dtype=np.float32)
    with Index.create(tmp_path / "x.index", dimensions=DIMENSIONS) as index:
        index.add([Document("first", "apple")], vectors=row[:1])
    shutil.copytree(tmp_path / "x.index", tmp_path / "copy.index")
    store = open_store(tmp_path / "x.index")
    for text in ("mistake", "right"):
        with Index.open(tmp_path / "x.index") as index:
            index.add([Document("second", text)], vectors=row[1:2])
        assert snapshot_of(store).words(text, 5).matched == 1
        assert snapshot_of(store).words("mistake", 5).matched == (text == "mistake")
        if text == "mistake":
            (tmp_path / "x.index").rename(tmp_path / "old.index")
            (tmp_path / "copy.index").rename(tmp_path / "x.index")
    store.close()


def test_a_file_system_without_hard_links_keeps_the_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    row = np.eye(DIMENSIONS, dtype=np.float32)
    with Index.create(tmp_path / "x.index", dimensions=DIMENSIONS) as index:
        for number, text in enumerate(("apple", "pear", "plum")):
            index.add([Document(text, text)], vectors=row[number : number + 1])
            writer_of(index).settle()
            assert snapshot_of(index).words(text, 5).matched == 1
        assert index.check().ok


@pytest.mark.parametrize(
    ("question", "message"),
    [("", "has no word"), (" ?!… ", "has no word"), ("the of and", "has only words that are too common")],
)
def test_a_question_without_a_word_is_refused(kept: Kept, question: str, message: str) -> None:
    kept.put([1])
    with pytest.raises(BadInput, match=message):
        snapshot_of(kept).words(question, 5)


@pytest.mark.parametrize(
    "hostile",
    ['"', "AND", "apple AND", "title:apple", "apple^9", "(apple", "apple~2 -pear", "[a TO b]", "a\\", "*", "a\x00b",
     "apple" * 5000, "'; DROP TABLE passage", "{apple} || !&&", "\ud800 apple"],
)  # fmt: skip
def test_text_is_text(kept: Kept, hostile: str) -> None:
    writer_of(kept).put(Batch([embedded("a", "apple pie"), embedded("b", "pear")]))
    try:
        found = snapshot_of(kept).words(f"{hostile} apple", 5)
    except BadInput:
        pytest.fail("apple is a word")
    assert 1 in found.passages.tolist()


def test_an_empty_index_has_no_answer(kept: Kept) -> None:
    assert snapshot_of(kept).words("word1", 5).matched == 0
    writer_of(kept).settle()
    writer_of(kept).compact()
    assert snapshot_of(kept).words("word1", 5).matched == 0
    assert snapshot_of(kept).check(None).ok


def test_documents_that_are_only_titles_or_nothing(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        index.add([Document("a", "", "Winter tale"), Document("b", "")], vectors=np.ones((2, 2), np.float32))
        assert snapshot_of(index).words("winter", 5).passages.tolist() == [1]
        writer_of(index).settle()
        assert snapshot_of(index).words("winter", 5).passages.tolist() == [1]


def test_temporary_folders_go_with_the_reader(kept: Kept, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    kept.put([1, 2])
    writer_of(kept).settle()
    snapshot_of(kept).words("word1", 5)
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    store_of(kept).close()
    assert not list((tmp_path / "temporary").iterdir())


@needs_root
@needs_setpriv
@pytest.mark.parametrize("tail", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_read_only_folder_is_searched_by_someone_who_may_not_write(
    tmp_path: Path, environment: SimpleNamespace, tail: bool
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="likewise-test-")) / "x.index"
    try:
        with Index.create(folder, dimensions=2) as index:
            index.add([Document("a", "apple"), Document("b", "pear")], vectors=np.ones((2, 2), np.float32))
            writer_of(index).settle()
            if tail:
                index.remove(["b"])
                index.add([Document("c", "apple pear")], vectors=np.ones((1, 2), np.float32))
        for path in (folder.parent, *folder.parent.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        code = (
            "from contextlib import closing; from indexer.stores.addresses.open import open_store\n"
            f"with closing(open_store({str(folder)!r})) as store, store.snapshot() as snapshot:\n"
            "    print(snapshot.words('pear', 5).passages.tolist())"
        )
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", environment.python, "-W", "error"]
        if subprocess.run([*command, "-c", "import numpy"], capture_output=True, cwd="/", check=False).returncode:
            pytest.skip("the interpreter lies where no other user may run it")
        said = subprocess.run(
            [*command, "-c", code],
            capture_output=True, text=True, cwd="/", check=False,
            env={**os.environ, "PYTHONPATH": str(environment.root), "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        assert (said.stdout.strip(), said.stderr) == ("[3]" if tail else "[2]", "")
    finally:
        shutil.rmtree(folder.parent)


def test_files_of_words_have_the_permissions_of_all_others(tmp_path: Path) -> None:
    earlier = os.umask(0o027)
    try:
        with Index.create(tmp_path / "x.index", dimensions=2) as index:
            for uri in ("a", "b"):
                index.add([Document(uri, f"a pear {uri}")], vectors=np.eye(2, dtype=np.float32)[:1])
                with index.lock():
                    writer_of(index).compact()
    finally:
        os.umask(earlier)
    files = [path for path in (tmp_path / "x.index" / "words").glob("*/*/*") if path.suffix != ".lock"]
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o640"}
