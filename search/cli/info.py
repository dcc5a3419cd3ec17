"""likewise info: print the numbers of an index, and the outcome of each file."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from search.cli.options import IndexCommand, json_option
from search.cli.output import count_of, number, quoted, say, say_json, shown, warn_of
from search.cli.tables import print_table

if TYPE_CHECKING:
    from indexer.beside import Beside
    from indexer.encoders import Recipe
    from indexer.encoders.runtime_rule import Choice
    from indexer.stores.port import Info, ReasonCount, Snapshot

_SHOWN_REASONS = 5

_STATES = ["indexed", "unchanged", "updated", "skipped", "failed", "gone"]


@click.command(cls=IndexCommand)
@click.option(
    "--ledger",
    is_flag=False,
    flag_value="all",
    type=click.Choice(["all", *_STATES]),
    metavar="[STATE]",
    help="List the outcome of every file and record, or only those in STATE (" + ", ".join(_STATES) + ").",
)
@json_option
def info(path: str, ledger: str | None, as_json: bool) -> None:
    """Print what INDEX contains, how its vectors were made, and how many files were indexed, skipped or failed.

    \b
    likewise info papers.index
    likewise info papers.index --ledger failed
    """
    from indexer.beside import describe_beside
    from indexer.stores.open import open_store

    with closing(open_store(path)) as store, store.snapshot() as snapshot:
        if ledger:
            for row in list(snapshot.ledger(None if ledger == "all" else ledger)):
                if as_json:
                    say_json(asdict(row) | {"reason": row.reason.text()})
                else:
                    say(f"{row.state:<9} {shown(row.uri)}{'  ' + row.reason.text() if row.reason else ''}")
            return
        state, recipe, settings = snapshot.info(), snapshot.settings.recipe, snapshot.settings.passages
        ledger_counts, reasons = snapshot.ledger_counts(), snapshot.ledger_reasons()
        notes, address, language = snapshot.notes, store.address, snapshot.settings.language
        languages, beside, words_bias = _languages(snapshot), describe_beside(store), snapshot.settings.words_bias
    warn_of(notes)
    runtime = _runtime(recipe) if recipe else None
    if as_json:
        described = {
            "model": recipe.model if recipe else None,
            "recipe": json.loads(recipe.to_json()) if recipe else None,
        }
        passages = asdict(settings) if settings else None
        described |= {"passage_settings": passages, "runtime": asdict(runtime) if runtime else None}
        described |= {"languages": {code: round(share, 3) for code, share in languages.items()}, "language": language}
        numbers = asdict(state)
        details = numbers.pop("details")  # printed among the numbers, so that the object stays flat
        described |= {"beside": asdict(beside) if beside else None}
        say_json({**numbers, **details, **described, "ledger": ledger_counts, "notes": notes})
        return
    say(f"{shown(address)}: {count_of(state.documents, 'document')}, {count_of(state.passages, 'passage')}")
    rows = []
    if recipe and settings:
        rows.append(("model", f"{recipe}, {state.dimensions} dimensions, fingerprint {recipe.fingerprint[:12]}"))
        tokens = f"up to {settings.max_tokens} tokens, {settings.overlap} of overlap"
        rows.append(("passages", f"{tokens}, {number(state.tokens)} tokens in all"))
        if runtime:
            rows.append(("runtime", f"{runtime.name} on a CPU: {runtime.reason}"))
    else:
        rows.append(("vectors", f"your own, {state.dimensions} dimensions"))
    rows.append(_search_row(address, state))
    rows.append(("on disk", f"{state.bytes / 2**20:.1f} MB, format {state.format_version}"))
    rows.append(("languages", _language_line(languages, language)))
    if words_bias is not None:
        rows.append(("hybrid", f"words bias {words_bias:+.2f}, learned by likewise tune"))
    if beside:
        rows.append(_beside_row(beside, state.documents, address))
    rows.append(("fields", ", ".join(("uri", "title", "path", "format", "modified", *state.fields))))
    if state.dates:
        rows.append(("dates", ", ".join(state.dates)))
    if ledger_counts:
        rows.append(("sources", ", ".join(f"{number(count)} {name}" for name, count in ledger_counts.items())))
    rows += _reason_rows(reasons, address)
    print_table(rows)


def _search_row(address: str, state: Info) -> tuple[str, str]:
    """Return the line about how vectors are searched: the segments of a folder, or the graph of a database."""
    from indexer.stores.open import is_uri

    if is_uri(address):  # no passage waits to be sealed there
        graph = sum(row["count"] for row in state.segments)
        return "search", f"approximate, by a graph of {number(graph)} passages" if graph else "exact"
    kinds = ", ".join(f"{number(row['count'])} {row['kind']}" for row in state.segments) or "none"
    return "segments", f"{kinds}; {number(state.unsealed)} passages unsealed"


def _languages(snapshot: Snapshot) -> dict[str, float]:
    """Return the share of each language in a sample of the passages; none where passages are damaged."""
    from indexer.errors import IndexDamaged
    from indexer.languages import SAMPLE_TEXTS, languages_of

    try:
        drawn = snapshot.sample(SAMPLE_TEXTS).passages.tolist()
        return languages_of([passage.text for passage in snapshot.passages_by_id(drawn)])
    except IndexDamaged:  # `likewise check` says what is wrong
        return {}


def _language_line(shares: Mapping[str, float], language: str) -> str:
    """Return the languages of the texts, and the one in which words are searched."""
    from indexer.languages import NAMES, named

    words = f"as {NAMES[language]}" if language in NAMES else "as they are written"
    return f"{named(shares) or 'not known'}; words are searched {words}"


def _beside_row(beside: Beside, documents: int, address: str) -> tuple[str, str]:
    """Return the line about the index that stands beside this one."""
    from indexer.beside import unreadable

    migrate = f"likewise migrate {quoted(address)}"
    drop = f"--drop removes them ({beside.bytes / 2**20:.1f} MB)"
    if beside.problem:
        return "beside it", unreadable(shown(address), beside)
    if beside.place == "next":
        done = f"{number(beside.documents)} of {number(documents)} documents embedded with {beside.model}"
        return "migration", f"{done}; {migrate} --model {shlex.quote(beside.model)} goes on, {drop}"
    return "kept", f"vectors of {beside.model}; {migrate} --back brings them up to date and returns to them, {drop}"


def _reason_rows(reasons: Sequence[ReasonCount], address: str) -> list[tuple[str, str]]:
    """Return the most frequent reasons with their counts, wherever in a file a record has them."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in reasons:
        counts[row.state, replace(row.reason, line=None).text()] += row.count
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{number(count)} {state}: {reason}" for (state, reason), count in ranked[:_SHOWN_REASONS]]
    if rest := sum(count for _, count in ranked[_SHOWN_REASONS:]):
        lines.append(f"{number(rest)} for other reasons; likewise info {quoted(address)} --ledger lists all")
    return [("" if position else "reasons", line) for position, line in enumerate(lines)]


def _runtime(recipe: Recipe) -> Choice | None:
    from indexer.encoders.runtime_rule import runtime_of  # not at the top: `likewise --help` imports this file

    return runtime_of(recipe)
