"""Derived collections for `benchmarks.fusion`: other kinds of questions and texts than the judged collections have.

`python -m benchmarks.derived FOLDER [DATA]` writes each in BEIR form below FOLDER. They come from DATA, by default
$LIKEWISE_EVAL_DATA/data, from the sample collection of this repository, and from the standard library of the running
Python; its version is printed, as another one gives other functions. What answers a question follows from the texts
themselves: a docstring belongs to its function, a heading to its section. docs/fusion.md has the results.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import re
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from benchmarks.chunking import read as read_chunking
from benchmarks.data import evaluation_data
from search.evaluation.measures import Qrels, read_qrels, read_queries

SAMPLE = Path(__file__).parents[1] / "data"
MAX_DOCUMENTS = 1000
"""Functions of the standard library in a collection of code, and answers without their question."""

MAX_QUESTIONS = 500
PIECE_CHARACTERS = 800
MIN_OVERLAP = 40
"""Fewest characters of an answering span in a piece that counts as an answer; the whole span where it is shorter."""

RELATED = 4.0
"""The score, 0 to 5, from which the second sentence of a pair of STS is a paraphrase of the first."""


_Item = TypeVar("_Item")


class Text(NamedTuple):
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Collection:
    """A judged collection.

    Attributes:
        name: of its folder, with that of its origin: texts of one origin are not independent.
        documents: by id.
        questions: text by id.
        grades: grade of each document that answers, by question id.
    """

    name: str
    documents: Mapping[str, Text]
    questions: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]

    def write(self, folder: Path) -> None:
        """Write it below a folder, with at most MAX_QUESTIONS judged questions, chosen by the hash of their text."""
        target = folder / self.name
        (target / "qrels").mkdir(parents=True, exist_ok=True)
        judged = [query for query in self.grades if query in self.questions and self.questions[query].strip()]
        kept = set(_chosen(judged, MAX_QUESTIONS, lambda query: self.questions[query]))
        rows = [{"_id": id_, "title": text.title, "text": text.text} for id_, text in self.documents.items()]
        _write_lines(target / "corpus.jsonl", rows)
        _write_lines(target / "queries.jsonl", [{"_id": q, "text": self.questions[q]} for q in judged if q in kept])
        lines = [f"{q}\t{document}\t{grade}" for q in judged if q in kept for document, grade in self.grades[q].items()]
        table = "\n".join(["query-id\tcorpus-id\tscore", *lines, ""])
        (target / "qrels" / "test.tsv").write_text(table, encoding="utf-8")


def collections(data: Path) -> Iterator[Collection]:
    """Yield every derived collection of the evaluation data, the sample collection and the standard library."""
    yield from code(functions(Path(sysconfig.get_path("stdlib"))))
    yield from peps(data / "peps")
    yield rust_headings(data / "rust-book" / "src")
    yield from medquad(data / "medquad-liveqa")
    yield scifact_titles(data / "scifact")
    yield legal_clauses(data / "legal-summarization")
    yield sentences("sts/sts", data / "sts" / "stsb-test.tsv")
    yield sentences("sts/sts-de", data / "sts" / "stsb-de-test.tsv")
    for asked, answering in (("de", "en"), ("en", "de")):
        yield across_languages(data / "xquad", asked, answering)
    yield from chunking(data / "chunking-eval")
    yield sample(SAMPLE)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a module.

    Attributes:
        name: qualified with module and class.
        summary: the first paragraph of its docstring, on one line.
        source: without the docstring.
    """

    name: str
    summary: str
    source: str

    @property
    def nameless(self) -> str:
        """The source without the function's own name."""
        return re.sub(rf"\b{re.escape(self.name.rpartition('.')[2])}\b", "f", self.source)


def functions(library: Path) -> list[Function]:
    """Return MAX_DOCUMENTS functions of the library with different docstrings, chosen by the hash of their source."""
    found: dict[str, Function] = {}
    for path in sorted(library.rglob("*.py")):
        module = path.relative_to(library).with_suffix("").parts
        if not {"test", "tests", "idle_test", "site-packages", "lib2to3"} & set(module):
            for function in _documented(path.read_text(encoding="utf-8", errors="replace"), ".".join(module)):
                found.setdefault(function.summary, function)
    return _chosen(list(found.values()), MAX_DOCUMENTS, lambda function: function.source)


def _documented(source: str, module: str) -> Iterator[Function]:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a template or an example of a mistake
        return
    lines = source.split("\n")

    def walk(node: ast.AST, name: str) -> Iterator[Function]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from walk(child, f"{name}.{child.name}")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(child)
                if docstring is None or len(child.body) < 2:  # nothing but the docstring
                    continue
                summary = " ".join(re.split(r"\n\s*\n", docstring)[0].split())
                stated, end = child.body[0], child.end_lineno or 0
                rest = [*lines[child.lineno - 1 : stated.lineno - 1], *lines[stated.end_lineno or 0 : end]]
                if len(summary.split()) >= 4 and rest:
                    yield Function(f"{name}.{child.name}", summary, "\n".join(rest))

    yield from walk(tree, module)


def code(chosen: Sequence[Function]) -> Iterator[Collection]:
    """Docstring to function, with and without its name, and name to docstring."""
    ids = {function.name: f"f{number}" for number, function in enumerate(chosen)}
    questions = {ids[each.name]: each.summary for each in chosen}
    own = {id_: {id_: 1} for id_ in questions}
    named = {ids[each.name]: Text(each.name, each.source) for each in chosen}
    yield Collection("code/code", named, questions, own)
    nameless = {ids[each.name]: Text("", each.nameless) for each in chosen}
    yield Collection("code/code-nameless", nameless, questions, own)
    descriptions = {ids[each.name]: Text("", each.summary) for each in chosen}
    names = {ids[each.name]: each.name for each in chosen}
    yield Collection("code/code-titles", descriptions, names, own)


_CITED = re.compile(r":pep:`(?:[^`<]*<)?(\d+)|\bPEP (\d+)\b")
_UNDERLINED = re.compile(r"^(\S.*)\n([=\-~^\"'#*+])\2{2,}[ \t]*$", re.M)


def peps(folder: Path) -> Iterator[Collection]:
    """Title to abstract, first sentence of the abstract to title, and title and abstract to the PEPs that it cites."""
    titles, abstracts, cited = {}, {}, {}
    for path in sorted(folder.glob("pep-[0-9][0-9][0-9][0-9].rst")):
        head, _, body = path.read_text(encoding="utf-8").partition("\n\n")
        title = re.search(r"^Title: (.+(?:\n[ \t]+.+)*)", head, re.M)
        sections = _UNDERLINED.split(body)[1:]  # heading, sign of the line below it, text, ...
        abstract = next((text for name, _, text in zip(*[iter(sections)] * 3, strict=True) if name == "Abstract"), "")
        number = str(int(path.stem.removeprefix("pep-")))
        if title and len(abstract.split()) >= 10:
            titles[number], abstracts[number] = " ".join(title[1].split()), abstract.strip()
            cited[number] = {str(int(first or second)) for first, second in _CITED.findall(body)} - {number}
    own = {number: {number: 1} for number in titles}
    plain = {number: Text("", text) for number, text in abstracts.items()}
    yield Collection("peps/pep-title2abs", plain, titles, own)
    first = {number: " ".join(re.split(r"(?<=[.!?])\s+", text)[0].split()) for number, text in abstracts.items()}
    yield Collection("peps/pep-titles", {number: Text("", title) for number, title in titles.items()}, first, own)
    both = {number: Text(titles[number], text) for number, text in abstracts.items()}
    citing = {number: dict.fromkeys(sorted(others & titles.keys()), 1) for number, others in cited.items()}
    citing = {number: others for number, others in citing.items() if len(others) >= 3}
    asked = {number: f"{titles[number]}. {first[number]}" for number in citing}
    # A question would find itself: its own abstract is not among the documents.
    rest = {number: text for number, text in both.items() if _half(number)}
    questions = {number: text for number, text in asked.items() if not _half(number)}
    grades = {number: {other: 1 for other in citing[number] if other in rest} for number in questions}
    yield Collection("peps/pep-cited", rest, questions, {number: each for number, each in grades.items() if each})


def rust_headings(folder: Path) -> Collection:
    """Heading to section."""
    sections: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.glob("*.md")):
        heading, lines, fenced = "", [], False
        for line in [*path.read_text(encoding="utf-8").split("\n"), "# end"]:
            fenced ^= line.startswith("```")
            if not fenced and (match := re.match(r"#{1,6} (.+)", line)):
                if heading and len(" ".join(lines).split()) >= 20:
                    sections[heading].append("\n".join(lines).strip())
                heading, lines = match[1].strip(), []
            else:
                lines.append(line)
    single = {f"s{number}": (heading, texts[0]) for number, (heading, texts) in enumerate(sections.items())}
    documents = {id_: Text("", text) for id_, (_, text) in single.items()}
    questions = {id_: heading for id_, (heading, _) in single.items()}
    return Collection("rust-book/rust-headings", documents, questions, {id_: {id_: 1} for id_ in single})


def medquad(folder: Path) -> Iterator[Collection]:
    """Question to similar question, a whole letter to answers, and the question of an answer to its text."""
    documents, questions, qrels = _judged(folder)
    titles = {id_: Text("", text.title) for id_, text in documents.items()}
    yield Collection("medquad-liveqa/medquad-faq", titles, questions, _positive(qrels))
    letters = read_queries(folder / "queries-original.jsonl")
    yield Collection("medquad-liveqa/medquad-orig", documents, letters, _positive(qrels))
    own: dict[str, dict[str, int]] = defaultdict(dict)
    texts = {id_: Text("", documents[id_].text) for id_ in _chosen(list(documents), MAX_DOCUMENTS, str)}
    for id_ in texts:
        own[documents[id_].title][id_] = 1
    asked = {f"t{number}": title for number, title in enumerate(own) if title.strip()}
    yield Collection("medquad-liveqa/medquad-title2ans", texts, asked, {q: own[title] for q, title in asked.items()})


def scifact_titles(folder: Path) -> Collection:
    """Claims to titles alone."""
    documents, questions, qrels = _judged(folder)
    titles = {id_: Text("", text.title) for id_, text in documents.items()}
    return Collection("scifact/scifact-titles", titles, questions, _positive(qrels))


def legal_clauses(folder: Path) -> Collection:
    """Clause to summary: the questions are longer than the documents."""
    clauses, summaries, qrels = _judged(folder)
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for summary, answering in _positive(qrels).items():
        for clause in answering:
            grades[clause][summary] = 1
    documents = {id_: Text("", text) for id_, text in summaries.items()}
    return Collection(
        "legal-summarization/legal-clauses", documents, {id_: clauses[id_].text for id_ in grades}, grades
    )


def sentences(name: str, path: Path) -> Collection:
    """Sentence to paraphrase."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    second = {sentence: f"s{number}" for number, sentence in enumerate(dict.fromkeys(row[2] for row in rows))}
    first = {sentence: f"q{number}" for number, sentence in enumerate(dict.fromkeys(row[1] for row in rows))}
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for score, asked, answer in rows:
        if float(score) >= RELATED and asked != answer:
            grades[first[asked]][second[answer]] = 1
    documents = {id_: Text("", sentence) for sentence, id_ in second.items()}
    return Collection(name, documents, {id_: sentence for sentence, id_ in first.items()}, grades)


def across_languages(folder: Path, asked: str, answering: str) -> Collection:
    """Questions in one language to texts in another."""
    documents, _, qrels = _judged(folder / answering)
    questions = read_queries(folder / asked / "queries.jsonl")
    return Collection(f"xquad/xquad-{asked}2{answering}", documents, questions, _positive(qrels))


def chunking(folder: Path) -> Iterator[Collection]:
    """Questions to pieces of long documents; the reports of companies, which are much alike, are one of their own."""
    texts, questions = read_chunking(folder)
    for name, members in (("chunking", texts.keys() - {"finance"}), ("chunking-finance", {"finance"})):
        pieces = {
            f"{document}-{start}": (document, start, end)
            for document in sorted(members)
            for start, end in _pieces(texts[document])
        }
        grades: dict[str, dict[str, int]] = {}
        for number, question in enumerate(questions):
            answering = {
                id_: 1
                for id_, (document, start, end) in pieces.items()
                for place in question.references
                if place.document == document
                and min(end, place.end) - max(start, place.start) >= min(MIN_OVERLAP, place.end - place.start)
            }
            if answering:
                grades[f"q{number}"] = answering
        documents = {id_: Text("", texts[document][start:end]) for id_, (document, start, end) in pieces.items()}
        asked = {query: questions[int(query.removeprefix("q"))].text for query in grades}
        yield Collection(f"chunking-eval/{name}", documents, asked, grades)


def sample(folder: Path) -> Collection:
    """The sample collection of this repository."""
    documents = {}
    for path in sorted((folder / "collection").rglob("*.*")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".jsonl":
            rows = map(json.loads, text.splitlines())
            documents.update({row["_id"]: Text(row["title"], row["text"]) for row in rows})
        else:
            documents[str(path.relative_to(folder / "collection"))] = Text("", text)
    questions = read_queries(folder / "questions" / "queries.jsonl")
    return Collection("sample/sample", documents, questions, _positive(read_qrels(folder / "questions" / "qrels.tsv")))


def _judged(folder: Path) -> tuple[dict[str, Text], dict[str, str], Qrels]:
    rows = map(json.loads, (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    documents = {row["_id"]: Text(row.get("title", ""), row["text"]) for row in rows}
    return documents, read_queries(folder / "queries.jsonl"), read_qrels(folder / "qrels" / "test.tsv")


def _positive(qrels: Qrels) -> dict[str, dict[str, int]]:
    judged = {query: {d: grade for d, grade in grades.items() if grade > 0} for query, grades in qrels.grades.items()}
    return {query: grades for query, grades in judged.items() if grades}


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of pieces of up to PIECE_CHARACTERS, which end at white space where there is some."""
    start = 0
    while start < len(text):
        end = start + PIECE_CHARACTERS
        if end < len(text):
            end = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1 or end
        if text[start:end].strip():
            yield start, min(end, len(text))
        start = end


def _chosen(items: Sequence[_Item], count: int, text: Callable[[_Item], str]) -> list[_Item]:
    """Return `count` of the items, those with the lowest hash of their text, in their own order."""
    hashes = [hashlib.sha256(text(item).encode("utf-8", "surrogatepass")).digest() for item in items]
    lowest = set(sorted(range(len(items)), key=hashes.__getitem__)[:count])
    return [item for number, item in enumerate(items) if number in lowest]


def _half(number: str) -> bool:
    """Return whether this PEP is among the half that are documents."""
    return hashlib.sha256(number.encode()).digest()[0] < 128


def _write_lines(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("usage: python -m benchmarks.derived FOLDER [DATA]")
    data = Path(sys.argv[2]) if len(sys.argv) == 3 else evaluation_data(" and no folder of data was given")
    print(f"standard library of Python {platform.python_version()}\n")
    print("| collection | documents | judged questions |\n| --- | --- | --- |")
    for collection in collections(data):
        collection.write(Path(sys.argv[1]))
        print(f"| {collection.name} | {len(collection.documents)} | {min(len(collection.grades), MAX_QUESTIONS)} |")


if __name__ == "__main__":
    main()
