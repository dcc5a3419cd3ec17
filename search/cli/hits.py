"""Printing hits: as text for people, or as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from search.cli.output import printable, say, say_json, shown, warn, warn_of

if TYPE_CHECKING:
    from search.hits import Hit, Hits


def print_hits(hits: Hits, as_json: bool, explain: bool = False) -> None:
    """Print hits, and their notes on standard error; `explain` adds the reasons of each score."""
    warn_of(hits.notes)
    if as_json:
        say_json(hits.as_json())
    elif not hits:
        say(_describe_no_hits(hits))
    else:
        if hits.answered is False:
            warn("nothing here seems to answer this: the best hit is no nearer than those of unrelated questions")
        for rank, hit in enumerate(hits, 1):
            click.echo("\n".join([*_lines(rank, hit), *(_reasons(hit) if explain else ()), ""]))


def _describe_no_hits(hits: Hits) -> str:
    if hits.matched:
        return "no hits"
    if hits.mode == "words":
        return "no hits: no document that passes the filter holds a word of the question"
    if not hits.query:
        return "nothing to rank: there is no other document, or none passes the filter"
    return "nothing to rank: the index is empty, or no document passes the filter"


def _lines(rank: int, hit: Hit) -> Iterable[str]:
    from indexer.markup import without_markup
    from search.snippets import snippet

    name = printable(hit.title or shown(hit.uri))
    yield f"{rank:>2}  {hit.score:.3f}  {click.style(name, bold=True)}"
    yield f"    {click.style(printable(place(hit)), dim=True)}"
    # printable() replaces each character by one character, so that the marks still fit.
    part = snippet(without_markup(hit.text, hit.format), (word["text"] for word in (hit.why or {}).get("words", ())))
    text, styled, position = printable(part.text), "", 0
    for start, end in part.marks:
        styled += text[position:start] + click.style(text[start:end], fg="green", bold=True)
        position = end
    yield f"    {styled}{text[position:]}"


def _reasons(hit: Hit) -> Iterable[str]:
    """Yield one line for each reason of the score."""
    from indexer.markup import without_markup

    why, reranked = dict(hit.why or {}), ""
    if first := why.get("first"):
        why |= first
        reranked = f"reranked from rank {first['rank']}, where its score was {first['score']:.3f} = "
    values = {"cosine": why.get("cosine"), "words": why.get("bm25")}
    labels, weights = {"cosine": "cosine", "words": "BM25"}, why.get("weights", {})
    parts = [
        f"{part:.3f} from {labels[name]} {values[name]:.3f} at weight {weights[name]:.2f}"
        for name, part in why.get("contributions", {}).items()
    ]
    yield f"    why       {reranked}{' + '.join(parts)}"
    if hit.percentile is not None:
        yield f"    rarity    nearer than {hit.percentile:.2f} % of random passages are to an unrelated question"
    if words := list(dict.fromkeys(word["text"].casefold() for word in why.get("words", ()))):
        yield f"    words     {printable(', '.join(words))}"
    if sentence := why.get("sentence"):
        text = " ".join(without_markup(sentence["text"], hit.format).split())
        yield f"    sentence  {printable(text)} ({sentence['cosine']:.3f})"


def place(hit: Hit) -> str:
    """Return where the passage is: path:line, path and page, or the uri; with its heading."""
    where = shown(hit.uri)
    if hit.path and hit.uri != hit.path and not hit.uri.startswith(hit.path):
        where += f" in {shown(hit.path)}"
    if hit.line is not None:
        where += f":{hit.line}"
    if hit.page is not None:
        where += f", page {hit.page}"
    return f"{where}  {hit.heading}" if hit.heading else where
