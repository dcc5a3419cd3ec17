"""The derived collections of `benchmarks.derived`, made of a few texts written here."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

from benchmarks import derived
from benchmarks.derived import Collection, Text
from search.evaluation.measures import read_qrels, read_queries


def judged(folder: Path, documents: dict[str, Text], questions: dict[str, str], qrels: dict[str, str]) -> Path:
    own = {question: {document: 2} for question, document in qrels.items()}
    Collection(folder.name, documents, questions, own).write(folder.parent)
    return folder


def test_docstrings_ask_for_their_functions(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(
        textwrap.dedent('''
            class Circle:
                def area(self):
                    """Return the area
                    of the circle.

                    More about it."""
                    return 3 * self.area_of_square()

                def empty(self):
                    """Nothing but this docstring here."""

            def undocumented():
                return 1
        '''),
        encoding="utf-8",
    )
    (tmp_path / "broken.py").write_text("def (:", encoding="utf-8")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_it.py").write_text('def f():\n    """A test that is left out."""\n    return 1\n')
    (function,) = derived.functions(tmp_path)
    assert (function.name, function.summary) == ("shapes.Circle.area", "Return the area of the circle.")
    assert " ".join(function.source.split()) == "def area(self): return 3 * self.area_of_square()"
    named, nameless, titles = derived.code([function])
    assert named.documents == {"f0": Text("shapes.Circle.area", function.source)}
    assert " ".join(nameless.documents["f0"].text.split()) == "def f(self): return 3 * self.area_of_square()"
    assert (titles.questions, titles.documents) == ({"f0": function.name}, {"f0": Text("", function.summary)})
    assert named.grades == nameless.grades == titles.grades == {"f0": {"f0": 1}}


def test_headings_ask_for_their_sections(tmp_path: Path) -> None:
    long = "word " * 20
    text = f"# One\n{long}\n```\n# a comment\n```\n## Short\ntoo short\n## Two\n{long}"
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    (tmp_path / "b.md").write_text(f"# One\nanother section of the same name, {long}", encoding="utf-8")
    collection = derived.rust_headings(tmp_path)
    assert list(collection.questions.values()) == ["One", "Two"]
    assert "# a comment" in collection.documents["s0"].text
    assert collection.grades == {"s0": {"s0": 1}, "s1": {"s1": 1}}


def pep(folder: Path, number: int, body: str) -> None:
    abstract = f"Abstract\n========\n\nThis is number {number}. {'It says a lot. ' * 5}\n\n"
    head = f"PEP: {number}\nTitle: The title\n   of {number}\nStatus: Final\n\n"
    text = f"{head}{abstract}Motivation\n----------\n\n{body}\n"
    (folder / f"pep-{number:04}.rst").write_text(text, encoding="utf-8")


def test_peps_ask_by_title_by_sentence_and_for_those_they_cite(tmp_path: Path) -> None:
    for number in range(1, 30):
        pep(tmp_path, number, "As :pep:`1`, :pep:`the second <2>`, PEP 3, PEP 4, PEP 5, PEP 6 and PEP 999 say.")
    abstracts, titles, cited = derived.peps(tmp_path)
    assert abstracts.questions["7"] == titles.documents["7"].text == "The title of 7"
    assert abstracts.documents["7"].text.startswith("This is number 7. It says")
    assert abstracts.documents["7"].text.endswith("a lot.")
    assert titles.questions["7"] == "This is number 7."
    assert not cited.documents.keys() & cited.questions.keys()
    wanted = {str(number): 1 for number in range(1, 7) if str(number) in cited.documents}
    for question, grades in cited.grades.items():
        assert grades == {document: 1 for document in wanted if document != question}


def test_a_paraphrase_answers_a_sentence(tmp_path: Path) -> None:
    rows = ["score\tsentence1\tsentence2", "5.0\ta\tb", "3.9\ta\tc", "4.0\ta\td", "5.0\te\te"]
    (tmp_path / "sts.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    collection = derived.sentences("sts/sts", tmp_path / "sts.tsv")
    assert [text.text for text in collection.documents.values()] == ["b", "c", "d", "e"]
    assert collection.grades == {"q0": {"s0": 1, "s2": 1}}


def test_parts_of_a_judged_collection_answer_each_other(tmp_path: Path) -> None:
    documents = {"a": Text("What is a?", "A is."), "b": Text("What is a?", "It is a."), "c": Text("And c?", "C.")}
    folder = judged(tmp_path / "x", documents, {"1": "a please", "2": "c please"}, {"1": "a", "2": "c"})
    (folder / "queries-original.jsonl").write_text('{"_id": "1", "text": "Dear all, a."}\n', encoding="utf-8")
    faq, letters, answers = derived.medquad(folder)
    assert faq.documents["b"] == Text("", "What is a?")
    assert (letters.questions, letters.documents) == ({"1": "Dear all, a."}, documents)
    assert answers.documents["b"] == Text("", "It is a.")
    assert {answers.questions[q]: grades for q, grades in answers.grades.items()} == {
        "What is a?": {"a": 1, "b": 1},
        "And c?": {"c": 1},
    }
    assert derived.scifact_titles(folder).documents["c"] == Text("", "And c?")
    clauses = derived.legal_clauses(folder)
    assert (clauses.questions, clauses.grades) == ({"a": "A is.", "c": "C."}, {"a": {"1": 1}, "c": {"2": 1}})
    for language in ("de", "en"):
        judged(tmp_path / "xquad" / language, documents, {"1": f"a, {language}"}, {"1": "a"})
    across = derived.across_languages(tmp_path / "xquad", "de", "en")
    assert (across.name, across.questions, across.grades) == ("xquad/xquad-de2en", {"1": "a, de"}, {"1": {"a": 2}})


def test_pieces_answer_where_they_hold_a_part_of_the_span(tmp_path: Path) -> None:
    (tmp_path / "corpora").mkdir()
    text = "some words of ten " * 100
    for name in ("finance", "other"):
        (tmp_path / "corpora" / f"{name}.md").write_text(text, encoding="utf-8")
    spans = [{"start": 700, "end": 810}, {"start": 795, "end": 1600}]
    rows: Sequence[object] = [
        {"text": "first", "corpus_id": "other", "references": spans[:1]},
        {"text": "second", "corpus_id": "finance", "references": spans[1:]},
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    other, finance = derived.chunking(tmp_path)
    pieces = [text.text for text in other.documents.values()]
    assert "".join(pieces) == text
    assert [piece for piece in pieces[:-1] if not (700 < len(piece) <= derived.PIECE_CHARACTERS)] == []
    assert (other.questions, other.grades) == ({"q0": "first"}, {"q0": {"other-0": 1}})
    # The first piece ends with 2 characters of the span, and the third begins with 5.
    assert finance.grades == {"q1": {"finance-797": 1}}


def test_a_collection_is_written_in_beir_form_with_a_part_of_its_questions(tmp_path: Path) -> None:
    count = derived.MAX_QUESTIONS + 7
    questions = {f"q{number}": f"text {number}" for number in range(count)} | {"blank": " ", "unjudged": "x"}
    grades = {f"q{number}": {"d": 1} for number in range(count)} | {"blank": {"d": 1}, "unknown": {"d": 1}}
    for folder in ("one", "two"):
        Collection("o/x", {"d": Text("T", "é")}, questions, grades).write(tmp_path / folder)
    written = tmp_path / "one" / "o" / "x"
    assert json.loads((written / "corpus.jsonl").read_text("utf-8")) == {"_id": "d", "title": "T", "text": "é"}
    kept = read_queries(written / "queries.jsonl")
    assert len(kept) == derived.MAX_QUESTIONS
    assert list(read_qrels(written / "qrels" / "test.tsv", kept).judged) == list(kept)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        assert (written / name).read_bytes() == (tmp_path / "two" / "o" / "x" / name).read_bytes()


def test_the_sample_collection_has_all_of_its_documents() -> None:
    collection = derived.sample(derived.SAMPLE)
    assert len(collection.documents) == 155
    assert collection.documents["bread-keeping"].title == "Keeping a loaf fresh"
    assert {document for grades in collection.grades.values() for document in grades} <= collection.documents.keys()
