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

from indexer.errors import count_of, in_shell
from likewise.shell.arguments.options import IndexCommand, json_option
from likewise.shell.terminal.output import number, printable, quoted, say, say_json, shown, warn_of
from likewise.shell.terminal.tables import print_table

if TYPE_CHECKING:
    from indexer.encoders import Recipe
    from indexer.stores.addresses.side_index import SideIndex
    from indexer.stores.port import Info, ReasonCount
    from indexer.stores.reading.snapshot import Snapshot

_SHOWN_REASONS = 5
_SHOWN_FIELDS = 10

_STATES = ["indexed", "unchanged", "updated", "skipped", "failed", "gone"]


@click.command(cls=IndexCommand)
@click.option(
    "--ledger",
    is_flag=False,
    flag_value="all",
    type=click.Choice(["all", *_STATES, "noted"]),
    metavar="[STATE]",
    help=(
        "List the outcome of every file and record, or only those in STATE ("
        + ", ".join(_STATES)
        + ", or noted: with notes on what was not read)."
    ),
)
@json_option
def info(path: str, ledger: str | None, as_json: bool) -> None:
    """Print what INDEX contains, how its vectors were made, and how many files were indexed, skipped or failed.

    \b
    likewise info papers.index
    likewise info papers.index --ledger failed
    likewise info papers.index --ledger noted
    """
    from indexer.languages.notes import languages_of_index
    from indexer.lookup import commonest_fields
    from indexer.stores.addresses.open import open_store
    from indexer.stores.addresses.side_index import describe_side_index

    with closing(open_store(path)) as store, store.snapshot() as snapshot:
        if ledger:
            _list_ledger(snapshot, ledger, as_json)
            return
        state, recipe, settings = snapshot.info(), snapshot.settings.recipe, snapshot.settings.passages
        ledger_counts, reasons, noted = snapshot.ledger_counts(), snapshot.ledger_reasons(), snapshot.noted_count()
        names = commonest_fields(snapshot)
        notes, address, language = snapshot.notes, store.address, snapshot.settings.language
        is_open = snapshot.settings.model_open is not None
        reason = "no document has chosen a model yet" if is_open else snapshot.settings.model_reason
        languages, side = languages_of_index(snapshot), describe_side_index(store)
        words_bias = snapshot.settings.words_bias
    warn_of(notes)
    if as_json:
        described = {
            "model": recipe.model if recipe else None,
            "recipe": json.loads(recipe.to_json()) if recipe else None,
            "passage_settings": asdict(settings) if settings else None,
        }
        described |= {"languages": {code: round(share, 3) for code, share in languages.items()}, "language": language}
        numbers = asdict(state)
        details = numbers.pop("details")  # printed among the numbers, so that the object stays flat
        described |= {"model_reason": reason, "beside": asdict(side) if side else None}
        counted = {"ledger": ledger_counts, "noted": noted, "notes": [*map(in_shell, notes)]}
        say_json({**numbers, **details, **described, **counted})
        return
    say(f"{shown(address)}: {count_of(state.documents, 'document')}, {count_of(state.passages, 'passage')}")
    rows = []
    if recipe and settings:
        # Without the shares of languages in the first run. The line about languages has those of today.
        why = reason.rpartition(" %, ")[2].removeprefix("and ").removeprefix("but ")
        rows += _model_rows(recipe) + ([("chosen", f"because {why}")] if why else [])
        tokens = f"up to {settings.max_tokens} tokens, {settings.overlap} of overlap"
        rows.append(("passages", f"{tokens}, {count_of(state.tokens, 'token')} in all"))
    else:
        rows.append(("vectors", f"your own, {state.dimensions} dimensions"))
    rows.append(_search_row(address, state))
    rows.append(("on disk", f"{state.bytes / 2**20:.1f} MB, format {state.format_version}"))
    rows.append(("languages", _language_line(languages, language)))
    if words_bias is not None:
        rows.append(("hybrid", f"words bias {words_bias:+.2f}, learned by likewise tune"))
    if side:
        rows.append(_side_index_row(side, state.documents, address))
    rows.append(("fields", _field_line(state, names)))
    if ledger_counts:
        rows.append(("sources", ", ".join(f"{number(count)} {name}" for name, count in ledger_counts.items())))
    if noted:
        rows.append(
            ("notes", f"on {number(noted)} of the sources; likewise info {quoted(address)} --ledger noted lists all")
        )
    rows += _reason_rows(reasons, address)
    print_table(rows)


def _list_ledger(snapshot: Snapshot, wanted: str, as_json: bool) -> None:
    """Print the rows that `--ledger` asks for, each with its file, reason and notes."""
    from indexer.sources.folders.source import STDIN

    rows = snapshot.noted() if wanted == "noted" else snapshot.ledger(None if wanted == "all" else wanted)
    for row in list(rows):
        reason, notes = row.reason.text(), [note.text() for note in row.notes]
        if as_json:
            shown_row = {"file": row.file, "uri": row.uri, "state": row.state, "reason": reason}
            say_json(shown_row | ({"notes": notes} if notes else {}))
        else:
            file = "" if row.uri.startswith(row.file) or row.file == STDIN else f"in {shown(row.file)}"
            say(printable("  ".join((f"{row.state:<9} {shown(row.uri)}", *filter(None, (file, reason, *notes))))))


def _model_rows(recipe: Recipe) -> list[tuple[str, str]]:
    """Return the line about the model of an index, or one for each of its two models."""
    models = [("model", recipe.for_documents)] + ([("questions", recipe.question)] if recipe.question else [])
    return [
        (name, f"{each}, {each.dimensions} dimensions, fingerprint {each.fingerprint[:12]}") for name, each in models
    ]


def _search_row(address: str, state: Info) -> tuple[str, str]:
    """Return the line about how vectors are searched: the segments of a folder, or the graph of a database."""
    from indexer.stores.addresses.open import is_uri

    if is_uri(address):  # no passage waits to be sealed there
        graph = sum(row["count"] for row in state.segments)
        return "search", f"approximate, by a graph of {count_of(graph, 'passage')}" if graph else "exact"
    kinds = ", ".join(f"{number(row['count'])} {row['kind']}" for row in state.segments) or "none"
    return "segments", kinds + (f"; {count_of(state.unsealed, 'passage')} unsealed" if state.unsealed else "")


def _field_line(state: Info, commonest: Sequence[str]) -> str:
    """Return the fields that a filter may name: the fields of every document, and the commonest fields of the
    metadata."""
    names = [name for name in dict.fromkeys((*commonest, *state.fields)) if name in state.fields]
    kinds = {name: [*state.fields[name], *(["date"] if name in state.dates else [])] for name in names[:_SHOWN_FIELDS]}
    described = [f"{name} ({' or '.join(types)})" for name, types in kinds.items()]
    if more := len(names) - len(kinds):
        described.append(f"and {number(more)} more (--json names all)")
    return "; ".join(["uri, title, path, format, modified", *([", ".join(described)] if described else [])])


def _language_line(shares: Mapping[str, float], language: str) -> str:
    """Return the languages of the texts, and the language in which words are searched."""
    from indexer.languages.detect import NAMES, listed, named
    from indexer.languages.notes import UNSPACED_LANGUAGES
    from indexer.stores.words.analysis import DEFAULT

    words = f"as {NAMES[language]}" if language in NAMES else "as they are written"
    if not shares and language == DEFAULT:  # nobody has chosen it, and a short text may be in any other
        return "not known, because there is too little text"
    if shares and UNSPACED_LANGUAGES.issuperset(listed(shares)):
        words = "as characters and pairs of characters"
    return f"{named(shares) or 'not known'}; words are searched {words}"


def _side_index_row(side: SideIndex, documents: int, address: str) -> tuple[str, str]:
    """Return the line about the next or previous index."""
    from indexer.stores.addresses.side_index import unreadable

    migrate = f"likewise migrate {quoted(address)}"
    drop = f"--drop removes them ({side.bytes / 2**20:.1f} MB)"
    if side.problem:
        return "beside it", in_shell(unreadable(shown(address), side))
    if side.place == "next":
        done = f"{number(side.documents)} of {count_of(documents, 'document')} embedded with {side.model}"
        return "migration", f"{done}; {migrate} --model {shlex.quote(side.model)} continues, {drop}"
    return "kept", f"vectors of {side.model}; {migrate} --back brings them up to date and returns to them, {drop}"


def _reason_rows(reasons: Sequence[ReasonCount], address: str) -> list[tuple[str, str]]:
    """Return the most frequent reasons with their counts. Lines of records are ignored, so that equal reasons are
    counted together."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in reasons:
        counts[row.state, replace(row.reason, line=None).text()] += row.count
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{number(count)} {state}: {reason}" for (state, reason), count in ranked[:_SHOWN_REASONS]]
    if rest := sum(count for _, count in ranked[_SHOWN_REASONS:]):
        lines.append(f"{number(rest)} for other reasons; likewise info {quoted(address)} --ledger lists all")
    return [("" if position else "reasons", line) for position, line in enumerate(lines)]
