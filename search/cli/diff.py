"""likewise diff: what changed between the answers of two indexes."""

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

_SHOWN = 5
"""How many uris of one question are listed, on each side."""


@click.command(cls=IndexCommand)
@click.argument("other", metavar="INDEX_B")
@queries_option
@click.option("-k", default=10, show_default=True, help="How many hits are compared.")
@mode_option
@trust_option
@json_option
def diff(path: str, other: str, queries: Path, k: int, mode: Mode, trust_remote_code: bool, as_json: bool) -> None:
    """Ask INDEX and INDEX_B the same questions and say which answers changed, those that changed most first.

    Alike is rank-biased overlap: 1 the same ranking, 0 nothing in common. --queries is JSON lines with _id and text.

    \b
    likewise diff before.index after.index --queries queries.jsonl
    """
    from search.evaluation.measures import read_queries
    from search.evaluation.overlap import rank_biased_overlap
    from search.searcher import Searcher

    asked = read_queries(queries)
    trust = trust_remote_code
    with Searcher(path, trust_remote_code=trust) as first, Searcher(other, trust_remote_code=trust) as second:
        answers = [one.search_many(list(asked.values()), k, mode) for one in (first, second)]
    warn_of(note for side in answers for hits in side for note in hits.notes)
    both = [[[hit.uri for hit in hits] for hits in side] for side in answers]
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
