"""likewise watch: keep an index like its sources."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from indexer.errors import BadInput, count_of
from likewise.shell.arguments import options
from likewise.shell.terminal.extras import missing_extra
from likewise.shell.terminal.output import number, say, say_json, warn_of

if TYPE_CHECKING:
    from indexer.indexing.core import IndexCore
    from indexer.indexing.runs import Outcome
    from indexer.listener import Listener
    from indexer.sources import ReadOptions
    from likewise.watch.watch import Groups

_SECONDS = {"s": 1, "m": 60, "h": 3600}


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", str(value))
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is not a duration: write 30s, 10m or 1h", parameter, context)
        return float(match[1]) * _SECONDS[match[2]]


@click.command(cls=options.SourceCommand)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]", shell_complete=options.complete_path)
@click.option(
    "--every", "every_s", type=_Duration(), default="10m", show_default=True, help="Scan at least this often."
)
@click.option("--keep", is_flag=True, help="Keep documents that are no longer in their SOURCE.")
@click.option("--prune", is_flag=True, hidden=True, help="Do what is done without --keep.")
@click.option("--yes", is_flag=True, help="Allow a scan to remove more than half of the documents.")
@click.option("--model", metavar="NAME|PATH", help="Model of a new index.  [default: auto]")
@click.option("--language", metavar="L", help="Language of the words of a new index.  [default: auto]")
@options.glob_option
@options.no_ignore_option
@options.trust_option
@options.json_option
def watch(
    path: str,
    sources: tuple[str, ...],
    every_s: float,
    keep: bool,
    prune: bool,
    yes: bool,
    model: str | None,
    language: str | None,
    glob: tuple[str, ...],
    no_ignore: bool,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Keep INDEX up to date with its sources until Ctrl-C: scan them now, after each change, and every ten minutes.

    The file system reports changes. On network mounts it does not, and the next scan on the timer finds them. Documents
    that are no longer in their SOURCE are removed, unless the SOURCE is empty or missing. A scan that would remove more
    than half of the documents removes none without --yes. Without SOURCE, the recorded sources are watched, as likewise
    update reads them.

    \b
    likewise watch papers.index
    likewise watch papers.index ~/papers
    likewise watch papers.index ~/papers --keep --every 1h
    """
    from indexer.sources import ReadOptions
    from indexer.sources.folders.source import STDIN

    try:
        import watchfiles  # noqa: F401 - said before the first scan, which may be long
    except ModuleNotFoundError as error:
        raise missing_extra(error, "watch") from error
    from likewise.shell.arguments.configuration import read_extractors
    from likewise.shell.indexing.runs import advice
    from likewise.shell.indexing.vector_options import VectorOptions
    from likewise.shell.terminal.progress import Console
    from likewise.watch.watch import Watch

    model, language = options.unless_configured(path, model=model, language=language)
    if not sources and (glob or no_ignore):
        raise BadInput("--glob and --no-ignore need a SOURCE: a recorded one is read with its own options")
    if keep and prune:
        raise BadInput("--keep and --prune contradict each other: leave one of them out")
    if STDIN in sources:
        raise BadInput("standard input cannot be watched: name files or folders")
    vectors = VectorOptions(model=model, language=language, trust_remote_code=trust_remote_code)
    notes: list[str] = []
    console = Console()

    @contextmanager
    def open_index(listener: Listener, groups: Groups) -> Iterator[IndexCore]:
        from indexer.indexing.context import Context
        from likewise.shell.indexing.runs import open_for_writing, vectors_cached

        with (
            vectors_cached(True, notes) as cache,
            open_for_writing(path, vectors, Context(vectors.runtime, cache, listener), groups) as (index, _),
        ):
            yield index

    advised: list[str] | None = None  # after the scan before

    def report(outcome: Outcome) -> None:
        nonlocal advised
        counts = outcome.summary
        changed = {
            "indexed": counts.indexed,
            "updated": counts.updated,
            "failed": counts.failed,
            "pruned": outcome.pruned,
        }
        warn_of(note for note in notes if note not in console.printed)
        notes.clear()
        if keep:
            outcome = replace(outcome, lost=replace(outcome.lost, uris=()))  # nobody has to be told to remove them
        if advised is not None:  # what has failed as before was told after the first scan
            outcome = replace(outcome, summary=replace(counts, failed=counts.newly_failed))
        earlier, advised = advised, [*advice(outcome, path)]
        news = [text for text in advised if text not in (earlier or ())]
        warn_of(news)
        if as_json:
            say_json({"seen": counts.seen, **changed, "documents": outcome.documents, "passages": outcome.passages})
        elif any(value for name, value in changed.items() if name != "failed") or news or earlier is None:
            parts = ", ".join(f"{number(value)} {name}" for name, value in changed.items() if value) or "no change"
            say(f"{parts}: {count_of(outcome.documents, 'document')} in {count_of(outcome.passages, 'passage')}")

    read_options = ReadOptions(glob=glob, ignore=not no_ignore, extractors=read_extractors())
    watching = Watch(
        [(read_options, sources)] if sources else _recorded(path),
        open_index,
        path,
        every_s=every_s,
        prune=not keep,
        yes=yes,
        report=report,
        listener=console,
    )
    for number_of_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number_of_signal, lambda *_: watching.stop())
    watching.run()


def _recorded(address: str) -> list[tuple[ReadOptions, list[str]]]:
    """Return the recorded sources of the index, with the options that they are read with."""
    from indexer.stores.addresses.open import open_store
    from likewise.shell.arguments.configuration import read_extractors
    from likewise.shell.indexing.runs import recorded_groups

    with closing(open_store(address)) as store, store.snapshot() as snapshot:
        return recorded_groups(address, snapshot.settings.sources, read_extractors())
