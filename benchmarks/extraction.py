"""Words of files that are missing in what likewise reads of them, found by a second reader of each format.

    LIKEWISE_EVAL_DATA=... python -m benchmarks.extraction [--json] [FILE|FOLDER...]
    python -m benchmarks.extraction --time --against ../before [FILE|FOLDER...]

It prints, for each file with missing words, how many, the words, and the notes that the ledger has on the file. Totals
by format follow: a word is missing with a note or without. Without a FILE or FOLDER it reads all documents of
LIKEWISE_EVAL_DATA/data, and all files that the tests of the readers make. The second readers are in second_readers.py:
pdftotext, the raw XML of Office files, Python's html, email, json and csv. A text in UTF-8 must be the file itself.

--time measures instead how fast files are read (extraction_speed.py).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import extraction_speed
from benchmarks.machine import machine
from benchmarks.second_readers import SECOND, decoded, json_texts, words_of
from indexer.sources import Entry, ReadOptions, open_sources, read
from indexer.sources.formats import FORMATS, TEXT
from indexer.stores.addresses.open import holds_store

ROOT = Path(__file__).parents[1]
_UNWANTED = re.compile(r"[\W_]+|[\x00-\x08]")


@dataclass
class Compared:
    """The comparison of one file: its number of words, the missing words, and its notes in the ledger."""

    file: str
    format: str
    words: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    not_compared: str = ""

    def line(self) -> str:
        count = sum(self.missing.values())
        words = " ".join(list(self.missing)[:20])
        return f"{self.file}: {count} of {self.words} missing: {words} [{'; '.join(self.notes) or 'no note'}]"


def squeezed(text: str) -> str:
    """The letters and digits of a text alone: a word that a line end divides is in it."""
    return _UNWANTED.sub("", unicodedata.normalize("NFKC", text).casefold())


def text_of(entries: list[Entry]) -> str:
    """All that can be found of a file: texts, titles, headings, ids and fields."""
    parts: list[str] = []
    for entry in entries:
        if (document := entry.document) is not None:
            parts += [document.text, document.title, *json_texts(dict(document.metadata))]
            parts += [section.heading for section in document.sections if section.heading not in document.text]
            parts += [str(value) for value in document.metadata.values() if not isinstance(value, str)]
            parts.append(document.uri.rpartition("/")[2])
    return "\n".join(parts)


def missing_words(expected: str, text: str) -> Counter[str]:
    """Words of one text that another has less often, though neither divided nor joined."""
    needed = words_of(expected)
    short = needed - words_of(text)
    whole = squeezed(text) if short else ""
    return Counter({word: count for word, count in short.items() if whole.count(squeezed(word)) < needed[word]})


def compare(path: Path, options: ReadOptions) -> Compared:
    entries = [
        entry
        for source in open_sources([str(path)], options, holds_store)
        for entry in read(source, options, lambda _: None)
    ]
    documents = [entry.document for entry in entries if entry.document is not None]
    kind = (documents[0].format if documents else None) or path.suffix[1:].lower()
    if documents and kind == "eml" and "#" in documents[0].uri:
        kind = "mbox"
    compared = Compared(str(path), kind)
    compared.notes = [note.text() for entry in entries for note in (entry.reason, *entry.notes) if note]
    second = SECOND.get(kind)
    try:
        if second is not None:
            expected = second(path)
        else:
            expected = decoded(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")
            if FORMATS.get(path.suffix.lower(), TEXT).kind != "text" or "\0" in expected:
                raise ValueError("no second reader")
    except Exception as error:  # noqa: BLE001 the tests make damaged files of every kind
        compared.not_compared = str(error) or repr(error)
        return compared
    lost = missing_words(expected, text_of(entries))
    texts = [document.text.replace("\r\n", "\n").replace("\r", "\n") for document in documents]
    if second is None and documents and texts != [expected]:
        lost["(not the file)"] += 1
    compared.words, compared.missing = words_of(expected).total(), dict(lost.most_common())
    return compared


def files_of_tests(folder: Path) -> Path:
    """Run the tests of the readers, and return the folder of the files that they made."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "tests/parts/readers",
        "tests/engine/sources",
        "--basetemp",
        str(folder / "made"),
    ]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return folder / "made"


def walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.endswith((".index", "current")) and name != ".likewise"
        )
        yield from (Path(parent, name) for name in sorted(names) if Path(parent, name).is_file())


def report(title: str, files: Iterator[Path], *, as_json: bool) -> None:
    options = ReadOptions(ignore=False)
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    found = list[Compared]()
    for path in files:
        compared = compare(path, options)
        found.append(compared)
        missing = "missing with a note" if compared.notes else "missing without"
        counts = {"files": 1, "words": compared.words, missing: sum(compared.missing.values())}
        rows[compared.format].update(counts)
        rows[compared.format]["not compared"] += bool(compared.not_compared)
        if compared.missing and not as_json:
            print(compared.line(), flush=True)
    columns = ("files", "words", "missing with a note", "missing without", "not compared")
    rows["all"] = sum(rows.values(), Counter[str]())
    if as_json:
        print(json.dumps({"title": title, "files": [asdict(each) for each in found], "totals": rows}))
        return
    print(f"\n{title}\n\n| format | {' | '.join(columns)} |\n{'| --- ' * (len(columns) + 1)}|")
    for kind, row in sorted(rows.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"| {kind} | " + " | ".join(f"{row[column]:,}" for column in columns) + " |")
    print(flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0] if __doc__ else "",
        epilog="example: python -m benchmarks.extraction ~/documents; before and after a change: "
        "python -m benchmarks.extraction --time --against ../likewise-before",
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="FILE|FOLDER")
    parser.add_argument("--json", action="store_true", help="print JSON, with all files and all missing words")
    parser.add_argument("--time", action="store_true", help="measure the speed of reading, by format")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="--time: also measure another checkout")
    parser.add_argument("--python", default=sys.executable, help="--against: the Python of the other checkout")
    parser.add_argument("--turns", type=int, default=5, help="--time: the best of this many (default: %(default)s)")
    arguments = parser.parse_args()
    if not arguments.json:
        print(f"{machine()}\n")
    folder = Path(tempfile.mkdtemp(prefix="likewise-extraction-"))
    try:
        if arguments.time:
            checkouts = {"this": (ROOT, sys.executable)}
            if arguments.against:
                checkouts["other"] = (arguments.against.resolve(), arguments.python)
            paths = [file for path in arguments.paths for file in (walk(path) if path.is_dir() else [path])]
            groups = extraction_speed.by_suffix(paths) if paths else extraction_speed.make_files(folder)
            extraction_speed.report(groups, checkouts, arguments.turns, as_json=arguments.json)
            return 0
        for path in arguments.paths:
            report(path.name, walk(path) if path.is_dir() else iter([path]), as_json=arguments.json)
        if not arguments.paths:
            data = Path(os.environ["LIKEWISE_EVAL_DATA"]) / "data"
            report("documents of the evaluation data", walk(data), as_json=arguments.json)
            report("files of the tests", walk(files_of_tests(folder)), as_json=arguments.json)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
