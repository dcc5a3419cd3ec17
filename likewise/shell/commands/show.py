"""likewise show: print one document of an index."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.errors import BadInput
from likewise.shell.arguments.options import IndexCommand, complete_path, json_option, resolve_uri
from likewise.shell.terminal.output import say, say_json, shown, warn

if TYPE_CHECKING:
    from search.query.query import Mode
    from search.searcher import Searcher


@click.command(cls=IndexCommand)
@click.argument("uri", shell_complete=complete_path)
@click.option("--page", type=click.IntRange(1), metavar="N", help="Draw page N of a PDF into the file of --png.")
@click.option("--png", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="The picture to write.")
@click.option("--mark", metavar="QUESTION", help="Mark the passage and the sentence that are nearest to this question.")
@json_option
def show(path: str, uri: str, page: int | None, png: Path | None, mark: str | None, as_json: bool) -> None:
    """Print the document URI of INDEX as it is stored, or draw a page of its PDF.

    If URI is the path of a table or a mailbox, all its documents are printed in order; with --json, one per line. The
    end of a path is enough if only one path ends so. A page is drawn from the file itself, if it has not changed since
    it was indexed.

    \b
    likewise show papers.index notes/bread.txt
    likewise show bread.txt
    likewise show papers.index vaccines.pdf --page 3 --png page.png --mark "how do vaccines work"
    """
    from indexer.filters.tree import metadata_field
    from search.searcher import Searcher

    if (page is None) != (png is None) or (page is None and mark is not None) or (png is not None and as_json):
        raise BadInput("--page, --png and --mark belong together, without --json: give --page N and --png FILE")
    with Searcher(path) as searcher:
        stored = resolve_uri(searcher, path, uri)
        if page is not None and png is not None:
            _draw(searcher, stored, page, png, mark)
            return
        several = [] if stored in searcher else searcher.uris({"path": stored})
        for document in map(searcher.get, several or [stored]):
            if as_json:
                say_json(asdict(document))
                continue
            members = [("title", document.title), ("format", document.format), ("modified", document.modified)]
            members = [("uri", shown(document.uri)), *members] if several else members
            for name, value in (*members, *((metadata_field(key), each) for key, each in document.metadata.items())):
                if value not in (None, ""):
                    say(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
            say(f"\n{document.text}" + "\n" * bool(several), tabs=True)


def _draw(searcher: Searcher, uri: str, page: int, png: Path, question: str | None) -> None:
    marks = [] if question is None else _marks(searcher, uri, page, question)
    picture = searcher.original(uri).page(page, marks)
    try:
        png.write_bytes(picture.png)
    except OSError as error:
        raise BadInput(f"{shown(str(png))}: {error.strerror}: give another file") from error
    if question is not None and not picture.is_marked:
        why = "its text is not as the index has it" if marks else "no passage of the index is on it"
        warn(f"page {page} is drawn without marks: {why}")


def _marks(searcher: Searcher, uri: str, page: int, question: str) -> list[tuple[int, int]]:
    """Return where the passage of a page is that is nearest to a question, and then its nearest sentence."""
    document = searcher.get(uri)
    ends = [section.start for section in document.sections[1:]] + [len(document.text)]
    places = zip(document.sections, ends, strict=False)
    start, end = next(((section.start, end) for section, end in places if section.page == page), (0, 0))
    mode: Mode = "words" if searcher.recipe is None else "dense"
    for hit in searcher.search(question, k=1000, where={"uri": uri}, mode=mode, passages=True, explain=mode == "dense"):
        if hit.start < end and hit.end > start:
            sentence = (hit.why or {}).get("sentence")
            return [(hit.start, hit.end), *([(sentence["start"], sentence["end"])] if sentence else [])]
    return []
