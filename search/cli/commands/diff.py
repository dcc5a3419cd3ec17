"""likewise diff: compare the answers of two indexes to the same questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.errors import count_of
from search.cli.arguments import options
from search.cli.terminal.output import say, say_json, shown, warn, warn_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from search.query import Mode
    from search.searcher import Searcher

_MIN_SHARED = 0.2
"""Minimum share of the documents in the answers that both indexes have. Below it, the indexes hold two collections."""

_LISTED_URIS = 5
"""Maximum uris of a question that are listed for each index."""


@click.command(cls=options.IndexCommand)
@click.argument("other", metavar="INDEX_B")
@options.queries_option
@click.option("-k", default=10, show_default=True, help="How many hits of each question to compare.")
@options.mode_option
@options.trust_option
@options.json_option
def diff(path: str, other: str, queries: Path, k: int, mode: Mode, trust_remote_code: bool, as_json: bool) -> None:
    """Ask INDEX and INDEX_B the same questions and print the answers that differ, the largest differences first.

    The first number of each question is the rank-biased overlap: 1 for equal rankings, 0 for nothing in common. If the
    indexes hold different documents, a warning says so, and each question is one line.

    \b
    likewise diff before.index after.index --queries queries.jsonl
    """
    from search.evaluation.measures import read_queries
    from search.evaluation.overlap import rank_biased_overlap
    from search.searcher import Searcher

    questions = read_queries(queries)
    trust = trust_remote_code
    with Searcher(path, trust_remote_code=trust) as first, Searcher(other, trust_remote_code=trust) as second:
        answers = [searcher.search_many(list(questions.values()), k, mode=mode) for searcher in (first, second)]
        rankings = [[[hit.uri for hit in hits] for hits in side] for side in answers]
        shared = [_share(searcher, side) for searcher, side in zip((second, first), rankings, strict=True)]
    warn_of(note for side in answers for hits in side for note in hits.notes)
    differ = min(shared) < _MIN_SHARED
    if differ:
        warn(
            f"these are two different collections: {shown(other)} has {shared[0]:.0%} of the documents that "
            f"{shown(path)} finds, and {shown(path)} has {shared[1]:.0%} of those that {shown(other)} finds; compare "
            "two indexes of the same documents"
        )
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
            if not differ:
                _print_changes(before, after)
    changed_count = sum(before != after for _, _, before, after in rows)
    say(f"{changed_count} of {count_of(len(rows), 'question')} changed; overlap {mean:.3f} on average")


def _share(searcher: Searcher, rankings: Sequence[Sequence[str]]) -> float:
    """Return the share of the uris in the answers of one index that the other index has; 1 if there are no answers."""
    uris = {uri for ranking in rankings for uri in ranking}
    return len(searcher.get_many(sorted(uris))) / len(uris) if uris else 1.0


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
