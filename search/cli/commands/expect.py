"""likewise expect: test that searches find the documents they should find."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.errors import BadInput, ModelError, NotAnIndex, in_shell
from search.cli.arguments import options
from search.cli.terminal.output import printable, say, say_json, shown, warn, warn_of

if TYPE_CHECKING:
    from search.evaluation.expectations import BrokenExpectation, Question

_LISTED_HITS = 5


@click.command(cls=options.IndexCommand)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options.trust_option
@options.json_option
def expect(path: str, file: Path, trust_remote_code: bool, as_json: bool) -> int:
    """Ask INDEX the questions of FILE and exit with 1 if an answer is not as FILE expects.

    FILE is a YAML list of questions. It names documents by uri; files also by their path
    relative to the current folder.

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
    from search.evaluation.expectations import broken_expectations, read_expectations
    from search.searcher import Searcher

    questions = read_expectations(file)
    with Searcher(path, trust_remote_code=trust_remote_code) as searcher:

        def ask(question: Question) -> list[str]:
            try:
                hits = searcher.search(
                    question.text, question.depth, where=options.resolve_where(question.where), mode=question.mode
                )
            except (BadInput, ModelError, NotAnIndex) as error:
                raise BadInput(f"{question.place}: {in_shell(error)}") from error
            warn_of(hits.notes)
            return [hit.uri for hit in hits]

        for question in questions:
            for uri in (uri for expectation in question.expectations for uri in expectation.uris):
                if options.resolve_uris(searcher, [uri])[0] not in searcher:
                    warn(f"{question.place}: {uri} is not a document of the index")
        failures = list(broken_expectations(questions, ask, lambda uris: options.resolve_uris(searcher, uris)))
    count = sum(len(question.expectations) for question in questions)
    if as_json:
        say_json({"ok": not failures, "expectations": count, "broken": [_as_json(failure) for failure in failures]})
    else:
        for failure in failures:
            _print_failure(failure)
        say(f"{len(failures)} of {count} expectations broken" if failures else f"all {count} expectations hold")
    return 1 if failures else 0


def _as_json(failure: BrokenExpectation) -> dict[str, object]:
    return {
        "question": failure.question.text,
        "expected": failure.expectation.line,
        "ranks": dict(zip(failure.expectation.uris, failure.ranks, strict=True)),
        "found": failure.hits[:_LISTED_HITS],
    }


def _print_failure(failure: BrokenExpectation) -> None:
    say(failure.question.text)
    click.echo(click.style(f"  - {printable(failure.expectation.line)}", fg="red"))
    for uri, rank in zip(failure.expectation.uris, failure.ranks, strict=True):
        place = f"at {rank}" if rank else f"not in the first {len(failure.hits)}"
        click.echo(click.style(f"  + {printable(uri)} {place}", fg="green"))
    for rank, uri in enumerate(failure.hits[:_LISTED_HITS], 1):
        say(f"    {rank}  {shown(uri)}")
