"""likewise expect and diff: whether searches find what they should, and what changed between two indexes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.cli.command import (
    IndexCommand,
    json_option,
    mode_option,
    queries_option,
    resolve_uris,
    resolve_where,
    trust_option,
)
from indexer.cli.terminal import printable, say, say_json, shown, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from search.expect import Broken, Question

_SHOWN = 5


@click.command(cls=IndexCommand)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@trust_option
@json_option
def expect(path: str, file: Path, trust_remote_code: bool, as_json: bool) -> int:
    """Ask INDEX the questions of FILE and exit 1 when one does not find what FILE says it must.

    FILE is YAML, a list of questions; documents are named by uri, files also by their path from here.

    \b
      - question: how can I stop my bread from going stale
        top 3: bread-storage                   # or a list: all of them
        above: [bread-storage, bread-history]  # in this order
        not in top 10: stars-supernova
        where: lang = "en"                     # optional
        mode: dense                            # optional

    \b
    likewise expect papers.index expectations.yaml
    """
    from indexer.errors import BadInput
    from indexer.index import Index
    from search.expect import broken, read_expectations
    from search.searcher import Searcher

    questions = read_expectations(file)
    with Index.open(path) as index, Searcher(path, trust_remote_code=trust_remote_code) as searcher:

        def ask(one: Question) -> list[str]:
            try:
                hits = searcher.search(one.text, one.depth, resolve_where(one.where), one.mode)  # type: ignore[arg-type]
            except BadInput as error:
                raise BadInput(f"{one.place}: {error}") from error
            return [hit.uri for hit in hits]

        for one in questions:
            for uri in (uri for expectation in one.expectations for uri in expectation.uris):
                if resolve_uris(index, [uri])[0] not in index:
                    warn(f"{one.place}: {uri} is no document of the index")
        failures = list(broken(questions, ask, lambda uris: resolve_uris(index, uris)))
    count = sum(len(question.expectations) for question in questions)
    if as_json:
        say_json({"ok": not failures, "expectations": count, "broken": [_as_json(failure) for failure in failures]})
    else:
        for failure in failures:
            _show(failure)
        say(f"{len(failures)} of {count} expectations broken" if failures else f"all {count} expectations hold")
    return 1 if failures else 0


def _as_json(failure: Broken) -> dict[str, object]:
    return {
        "question": failure.question.text,
        "expected": failure.expectation.said,
        "ranks": dict(zip(failure.expectation.uris, failure.ranks, strict=True)),
        "found": failure.found[:_SHOWN],
    }


def _show(failure: Broken) -> None:
    say(failure.question.text)
    click.echo(click.style(f"  - {printable(failure.expectation.said)}", fg="red"))
    for uri, rank in zip(failure.expectation.uris, failure.ranks, strict=True):
        place = f"at {rank}" if rank else f"not in the first {len(failure.found)}"
        click.echo(click.style(f"  + {printable(uri)} {place}", fg="green"))
    for rank, uri in enumerate(failure.found[:_SHOWN], 1):
        say(f"    {rank}  {shown(uri)}")


@click.command(cls=IndexCommand)
@click.argument("other", metavar="INDEX_B")
@queries_option
@click.option("-k", default=10, show_default=True, help="How many hits are compared.")
@mode_option
@trust_option
@json_option
def diff(path: str, other: str, queries: Path, k: int, mode: str, trust_remote_code: bool, as_json: bool) -> None:
    """Ask INDEX and INDEX_B the same questions and say which answers changed, those that changed most first.

    Alike is rank-biased overlap: 1 the same ranking, 0 nothing in common. --queries is JSON lines with _id and text.

    \b
    likewise diff before.index after.index --queries queries.jsonl
    """
    from search.evaluate import read_queries
    from search.overlap import rank_biased_overlap
    from search.searcher import Searcher

    asked = read_queries(queries)
    trust = trust_remote_code
    with Searcher(path, trust_remote_code=trust) as first, Searcher(other, trust_remote_code=trust) as second:
        both = [
            [[hit.uri for hit in hits] for hits in one.search_many(list(asked.values()), k, mode)]  # type: ignore[arg-type]
            for one in (first, second)
        ]
    rows = sorted(
        (rank_biased_overlap(before, after), query, before, after)
        for query, before, after in zip(asked, *both, strict=True)
    )
    mean = sum(row[0] for row in rows) / len(rows)
    if as_json:
        changed = [{"query": q, "text": asked[q], "rbo": r, "before": b, "after": a} for r, q, b, a in rows if b != a]
        say_json({"questions": len(rows), "changed": changed, "mean_rbo": mean})
        return
    for alike, query, before, after in rows:
        if before != after:
            say(f"{alike:.3f}  {asked[query]}")
            _sides(before, after)
    changed_count = sum(before != after for _, _, before, after in rows)
    say(f"{changed_count} of {len(rows)} questions changed; alike {mean:.3f} on average")


def _sides(before: Sequence[str], after: Sequence[str]) -> None:
    """What left the first hits, what came, and a new first one."""
    if before[:1] != after[:1]:
        say(f"         first: {shown(before[0]) if before else '-'} -> {shown(after[0]) if after else '-'}")
    for sign, uris in (
        ("-", [uri for uri in before if uri not in after]),
        ("+", [u for u in after if u not in before]),
    ):
        if uris:
            more = f" and {len(uris) - _SHOWN} more" if len(uris) > _SHOWN else ""
            say(f"         {sign} {', '.join(map(shown, uris[:_SHOWN]))}{more}")
