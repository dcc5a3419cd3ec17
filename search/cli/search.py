"""likewise search and similar: hits for people on a terminal, plain text in a pipe, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from indexer.cli.command import IndexCommand, json_option, mode_option, resolve_where, trust_option
from indexer.cli.terminal import printable, say, say_json, shown, warn

if TYPE_CHECKING:
    from search.hits import Hit, Hits

_k = click.option("-k", default=10, show_default=True, help="How many hits.")
_where = click.option("--where", metavar="FILTER", help="""Such as 'year >= 2020 and lang in ("en", "de")'.""")


@click.command(cls=IndexCommand)
@click.argument("query")
@_k
@_where
@mode_option
@click.option("--passages", is_flag=True, help="Rank passages: a document may come more than once.")
@click.option("--min-score", type=float, help="Leave out hits that score less.")
@click.option("--min-percentile", type=click.FloatRange(0, 100), metavar="P", help="Leave out hits that rank lower.")
@click.option("--rerank", metavar="MODEL", help="Put the best hits in a new order with a cross-encoder.")
@click.option("--rerank-depth", default=50, show_default=True, help="How many hits --rerank looks at.")
@click.option("--exact", is_flag=True, help="Compare with every vector, even where an approximate index is faster.")
@click.option("--explain", is_flag=True, help="Say how each score came about, with the nearest sentence.")
@trust_option
@json_option
def search(
    path: str,
    query: str,
    k: int,
    where: str | None,
    mode: str,
    passages: bool,
    min_score: float | None,
    min_percentile: float | None,
    rerank: str | None,
    rerank_depth: int,
    exact: bool,
    explain: bool,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Rank the documents of INDEX by how near they are to QUERY in meaning.

    QUERY - reads questions from standard input, one a line.

    \b
    likewise search papers.index "how do vaccines work" -k 5
    likewise search papers.index "rate limits" --where 'year >= 2020' --json
    likewise search papers.index - < questions.txt
    """
    from indexer.errors import BadInput, NoWords
    from search.hits import Hits
    from search.searcher import Searcher

    # OpenVINO does without its converter where it is missing: 60 ms of imports, telemetry among them.
    sys.modules.setdefault("openvino.tools.ovc", None)  # type: ignore[arg-type]
    condition = resolve_where(where)
    with Searcher(path, trust_remote_code=trust_remote_code) as searcher:
        lines = (line.decode("utf-8", "surrogateescape").strip() for line in sys.stdin.buffer)
        questions = lines if query == "-" else iter([query])
        for number, question in enumerate(questions, 1):
            if query == "-" and not question:
                continue
            try:
                hits = searcher.search(
                    question,
                    k,
                    condition,
                    mode,  # type: ignore[arg-type]
                    passages,
                    min_score,
                    exact,
                    min_percentile,
                    rerank,
                    rerank_depth,
                    explain,
                )
            except NoWords as error:
                if query != "-":
                    raise
                warn(f"-:{number}: {error}")  # the questions after it are asked all the same
                hits = Hits((), 0, True, question, mode)
            except BadInput as error:
                if query != "-":
                    raise
                raise BadInput(f"-:{number}: {error}") from error
            if query == "-" and not as_json:
                say(question)
            _print(hits, as_json, explain)


@click.command(cls=IndexCommand)
@click.argument("uri")
@_k
@_where
@json_option
def similar(path: str, uri: str, k: int, where: str | None, as_json: bool) -> None:
    """Rank the other documents of INDEX by how near they are to the document URI.

    \b
    likewise similar papers.index notes/bread.txt -k 5
    """
    from indexer.cli.command import resolve_uris
    from indexer.index import Index
    from search.searcher import Searcher

    with Index.open(path) as index, Searcher(path) as searcher:
        _print(searcher.similar(resolve_uris(index, [uri])[0], k, resolve_where(where)), as_json)


def _print(hits: Hits, as_json: bool, explain: bool = False) -> None:
    if as_json:
        say_json(hits.as_json())
    elif not hits:
        say(_nothing(hits))
    else:
        if hits.answered is False:
            warn("nothing here seems to answer this: the best hit is no nearer than those of unrelated questions")
        for rank, hit in enumerate(hits, 1):
            click.echo("\n".join([*_lines(rank, hit), *(_reasons(hit) if explain else ()), ""]))


def _nothing(hits: Hits) -> str:
    if hits.matched:
        return "no hits"
    if hits.mode == "words":
        return "no hits: no document that may be found holds a word of the question"
    if not hits.query:
        return "nothing to rank: there is no other document, or none passes the filter"
    return "nothing to rank: the index is empty, or no document passes the filter"


def _lines(rank: int, hit: Hit) -> Iterable[str]:
    from search.snippets import snippet

    name = printable(hit.title or shown(hit.uri))
    yield f"{rank:>2}  {hit.score:.3f}  {click.style(name, bold=True)}"
    yield f"    {click.style(printable(place(hit)), dim=True)}"
    # Characters are cleaned one for one, so that the marks still fit.
    shown_part = snippet(hit.text, (word["text"] for word in (hit.why or {}).get("words", ())))
    text, styled, reached = printable(shown_part.text), "", 0
    for start, end in shown_part.marks:
        styled += text[reached:start] + click.style(text[start:end], fg="green", bold=True)
        reached = end
    yield f"    {styled}{text[reached:]}"


def _reasons(hit: Hit) -> Iterable[str]:
    """How the score came about, a line each."""
    why, before = dict(hit.why or {}), ""
    if first := why.get("first"):
        why |= first
        before = f"reranked from place {first['rank']}, where it scored {first['score']:.3f} = "
    values = {"cosine": why.get("cosine"), "words": why.get("bm25")}
    named, weights = {"cosine": "cosine", "words": "BM25"}, why.get("weights", {})
    parts = [
        f"{part:.3f} from {named[name]} {values[name]:.3f} at weight {weights[name]:.2f}"
        for name, part in why.get("contributions", {}).items()
    ]
    yield f"    why       {before}{' + '.join(parts)}"
    if hit.percentile is not None:
        yield f"    rarity    nearer than {hit.percentile:.2f} % of random passages are to an unrelated question"
    if found := list(dict.fromkeys(word["text"].casefold() for word in why.get("words", ()))):
        yield f"    words     {printable(', '.join(found))}"
    if sentence := why.get("sentence"):
        yield f"    sentence  {printable(' '.join(sentence['text'].split()))} ({sentence['cosine']:.3f})"


def place(hit: Hit) -> str:
    """Where the passage is: path:line, path and page, or the uri; with its heading."""
    where = shown(hit.uri)
    if hit.path and hit.uri != hit.path and not hit.uri.startswith(hit.path):
        where += f" in {shown(hit.path)}"
    if hit.line is not None:
        where += f":{hit.line}"
    if hit.page is not None:
        where += f", page {hit.page}"
    return f"{where}  {hit.heading}" if hit.heading else where
