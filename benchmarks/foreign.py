"""Hybrid mode where the model does not read the texts: nDCG@10 with several factors of the bias for unread questions.

    python -m benchmarks.foreign make PACKAGES FOLDER
    python -m benchmarks.foreign FOLDER...

The first writes collections in BEIR form below FOLDER. They come from Debian's packages libreoffice-help-LANGUAGE,
manpages-LANGUAGE, debian-faq-LANGUAGE and debian-reference-LANGUAGE, each unpacked with `dpkg-deb -x` into a folder of
its name below PACKAGES. A title is a question, and its answer is the text below it. The second prints the table for
these and for other collections, such as those of XQuAD; the name of a collection begins with its origin.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from lxml import html

from benchmarks.data import folder_asked
from benchmarks.fusion import left_out, read_legs
from benchmarks.machine import machine
from benchmarks.quality import collections
from indexer import Encoder, load_encoder
from likewise.cache.cached_encoder import CachedEncoder
from likewise.cache.vector_cache import open_vector_cache
from likewise.evaluation.measures import evaluate
from search.ranking.fusion import MAX_UNREAD_BIAS, READ_PIECES, fuse, probed_words_bias, words_weight

MAX_DOCUMENTS = 200
TEXT_CHARACTERS = 700
FACTORS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Values of UNREAD_FACTOR among which the best for the other origins is chosen."""


def titled(package: Path) -> Iterator[tuple[str, str]]:
    """Yield the titles and texts of an unpacked package."""
    for path in sorted(package.rglob("*.[hg][tz]*")):
        if path.suffix == ".gz" and "/man/" in str(path):
            yield from _manual_page(gzip.decompress(path.read_bytes()).decode(errors="replace"))
        elif path.suffix == ".html":
            tree = html.fromstring(path.read_bytes(), parser=html.HTMLParser(encoding="utf-8"))
            sections = tree.xpath('//div[@class="section"]')
            yield from _sections(sections) if sections else _help_page(tree)


def _manual_page(source: str) -> Iterator[tuple[str, str]]:
    sections = [part.partition("\n")[2] for part in re.split(r"^\.S[Hh] ", source, flags=re.M)[1:]]
    marks = r"\\f.|\\&|^\.[A-Za-z]+ ?|^\'.*$|^\.\\\".*$|\\\(..|\\"
    plain = [" ".join(re.sub(marks, "", text.replace("\\-", "-"), flags=re.M).split()) for text in sections]
    if plain and " - " in plain[0]:
        yield plain[0].partition(" - ")[2], " ".join(plain[2:])


def _sections(sections: list[html.HtmlElement]) -> Iterator[tuple[str, str]]:
    for section in sections:
        heading = section.xpath('./div[@class="titlepage"]')
        parts = [part for part in section if part not in heading and part.get("class") != "section"]
        title = " ".join(element.text_content() for element in heading)
        yield re.sub(r"^[\d.\s]+", "", title), " ".join(part.text_content() for part in parts)


def _help_page(tree: html.HtmlElement) -> Iterator[tuple[str, str]]:
    area = tree.get_element_by_id("DisplayArea", None)
    if area is not None and (heading := area.find(".//h1")) is not None:
        yield heading.text_content(), " ".join(part.text_content() for part in area.iter("p", "h2", "h3", "h4"))


def write(package: Path, folder: Path) -> None:
    """Write titles and texts of a package below a folder as a judged collection in BEIR form."""
    tidy = [(" ".join(title.split()), " ".join(text.split())[:TEXT_CHARACTERS]) for title, text in titled(package)]
    fit = {title: text for title, text in tidy if len(title.split()) >= 2 and len(text) >= 150}
    chosen = sorted(fit.items(), key=lambda item: hashlib.sha256(item[1].encode()).digest())[:MAX_DOCUMENTS]
    target = folder / package.name.rpartition("-")[0] / package.name
    (target / "qrels").mkdir(parents=True, exist_ok=True)
    texts = [{"_id": f"d{number}", "title": "", "text": text} for number, (_, text) in enumerate(chosen)]
    titles = [{"_id": f"d{number}", "text": title} for number, (title, _) in enumerate(chosen)]
    for name, rows in (("corpus.jsonl", texts), ("queries.jsonl", titles)):
        (target / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    grades = "".join(f"{row['_id']}\t{row['_id']}\t1\n" for row in texts)
    (target / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{grades}", encoding="utf-8")


def measured(path: Path, encoder: Encoder) -> tuple[list[float], list[float]]:
    """Return nDCG@10 by words and by meaning, and of hybrid mode with each factor."""
    legs = read_legs(path, encoder)
    bias, runs = probed_words_bias(legs.probed), []
    for factor in (None, *FACTORS):
        run = {}
        for query, found in legs.questions.items():
            unread = 0.0
            if factor is not None and legs.language != "en":
                unread = min(factor * np.log(max(found.pieces / READ_PIECES, 1.0)), MAX_UNREAD_BIAS)
            weight = words_weight(found.z_scores, found.words, found.terms, bias + unread)
            ways = [fuse(found.z_scores, found.words, weight).scores]
            run[query] = [found.words, found.cosines] if factor is None else ways
        for way in range(2 if factor is None else 1):
            ranked = {
                query: sorted(
                    zip(legs.questions[query].uris, map(float, scores[way]), strict=True), key=lambda x: -x[1]
                )
                for query, scores in run.items()
            }
            runs.append(evaluate(ranked, legs.qrels, ["nDCG@10"]).averages["nDCG@10"])
    return runs[:2], runs[2:]


def main() -> None:
    if sys.argv[1:2] == ["make"]:
        for package in sorted(Path(sys.argv[2]).iterdir()):
            write(package, Path(sys.argv[3]))
        return
    folder = folder_asked()
    encoder: Encoder = load_encoder("all-MiniLM-L6-v2")
    if cache := open_vector_cache():
        encoder = CachedEncoder(encoder, cache, "auto")
    print(f"{machine()}\n\n| collection | words | dense | hybrid, factor {' | '.join(map(str, FACTORS))} |")
    print("| --- " * (3 + len(FACTORS)) + "|")
    found = collections(folder)
    better, rows = [], []
    for path in found:
        single, hybrid = measured(path, encoder)
        better.append(max(single))
        rows.append(hybrid)
        print(f"| {path.relative_to(folder)} | {' | '.join(f'{v:.4f}' for v in (*single, *hybrid))} |", flush=True)
    table = np.array(rows)
    ratios = table / np.array(better)[:, None]
    columns = left_out([path.relative_to(folder).parts[0] for path in found], ratios)
    chosen = np.arange(len(found)), columns
    ways = {f"factor {factor}": (table[:, at], ratios[:, at]) for at, factor in enumerate(FACTORS)}
    ways["factor chosen without the origin"] = table[chosen], ratios[chosen]
    print("\n| hybrid | mean | worst, to the better leg | collections below .99 of it |\n| --- | --- | --- | --- |")
    for name, (values, to_better) in ways.items():
        print(f"| {name} | {values.mean():.4f} | {to_better.min():.3f} | {(to_better < 0.99).sum()} |")


if __name__ == "__main__":
    main()
