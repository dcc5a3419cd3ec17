"""likewise expect: whether searches find what they should."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from search.cli.options import (
    IndexCommand,
    json_option,
    resolve_uris,
    resolve_where,
    trust_option,
)
from search.cli.output import printable, say, say_json, shown, warn, warn_of

if TYPE_CHECKING:
    from search.evaluation.expectations import Broken, Question

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
    from search.evaluation.expectations import broken, read_expectations
    from search.searcher import Searcher

    questions = read_expectations(file)
    with Searcher(path, trust_remote_code=trust_remote_code) as searcher:

        def ask(one: Question) -> list[str]:
            try:
                hits = searcher.search(one.text, one.depth, resolve_where(one.where), one.mode)
            except BadInput as error:
                raise BadInput(f"{one.place}: {error}") from error
            warn_of(hits.notes)
            return [hit.uri for hit in hits]

        for one in questions:
            for uri in (uri for expectation in one.expectations for uri in expectation.uris):
                if resolve_uris(searcher, [uri])[0] not in searcher:
                    warn(f"{one.place}: {uri} is no document of the index")
        failures = list(broken(questions, ask, lambda uris: resolve_uris(searcher, uris)))
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
