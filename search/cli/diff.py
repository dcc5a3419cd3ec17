"""likewise diff: compare the answers of two indexes to the same questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from search.cli.options import (
    IndexCommand,
    json_option,
    mode_option,
    queries_option,
    trust_option,
)
from search.cli.output import say, say_json, shown, warn_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from search.query import Mode

_LISTED_URIS = 5
"""How many uris of a question are listed at most, for each index."""


@click.command(cls=IndexCommand)
@click.argument("other", metavar="INDEX_B")
@queries_option
@click.option("-k", default=10, show_default=True, help="How many hits of each question to compare.")
@mode_option
@trust_option
@json_option
def diff(path: str, other: str, queries: Path, k: int, mode: Mode, trust_remote_code: bool, as_json: bool) -> None:
    """Ask INDEX and INDEX_B the same questions and print the answers that differ, those that differ most first.

    The first number of each question is the rank-biased overlap: 1 for equal rankings, 0 for nothing in common.

    \b
    likewise diff before.index after.index --queries queries.jsonl
    """
    from search.evaluation.measures import read_queries
    from search.evaluation.overlap import rank_biased_overlap
    from search.searcher import Searcher

    questions = read_queries(queries)
    trust = trust_remote_code
    with Searcher(path, trust_remote_code=trust) as first, Searcher(other, trust_remote_code=trust) as second:
        answers = [searcher.search_many(list(questions.values()), k, mode) for searcher in (first, second)]
    warn_of(note for side in answers for hits in side for note in hits.notes)
    rankings = [[[hit.uri for hit in hits] for hits in side] for side in answers]
    rows = sorted(
        (rank_biased_overlap(before, after), query, before, after)
        for query, before, after in zip(questions, *rankings, strict=True)
    )
    mean = sum(row[0] for row in rows) / len(rows)
    if as_json:
        changed = [
            {"query": query, "text": questions[query], "rbo": overlap, "before": before, "after": after}
            for overlap, query, before, after in rows
            if before != after
        ]
        say_json({"questions": len(rows), "changed": changed, "mean_rbo": mean})
        return
    for overlap, query, before, after in rows:
        if before != after:
            say(f"{overlap:.3f}  {questions[query]}")
            _print_changes(before, after)
    changed_count = sum(before != after for _, _, before, after in rows)
    say(f"{changed_count} of {len(rows)} questions changed; overlap {mean:.3f} on average")


def _print_changes(before: Sequence[str], after: Sequence[str]) -> None:
    """Print a new first hit, and the hits that only one side has."""
    if before[:1] != after[:1]:
        say(f"         first: {shown(before[0]) if before else '-'} -> {shown(after[0]) if after else '-'}")
    for sign, uris in (
        ("-", [uri for uri in before if uri not in after]),
        ("+", [uri for uri in after if uri not in before]),
    ):
        if uris:
            more = f" and {len(uris) - _LISTED_URIS} more" if len(uris) > _LISTED_URIS else ""
            say(f"         {sign} {', '.join(map(shown, uris[:_LISTED_URIS]))}{more}")
