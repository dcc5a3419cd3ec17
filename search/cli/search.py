"""likewise search: rank the documents of an index by a question."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from search.cli.hits import print_hits
from search.cli.options import (
    RankingCommand,
    json_option,
    k_option,
    mode_option,
    resolve_where,
    trust_option,
    where_option,
)
from search.cli.output import say, warn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from search.query import Mode


@click.command(cls=RankingCommand)
@click.argument("words", nargs=-1, metavar="QUERY...")
@k_option
@where_option
@mode_option
@click.option(
    "--passages", is_flag=True, help="Rank passages instead of documents; a document may come more than once."
)
@click.option("--min-score", type=float, help="Leave out hits with a lower score.")
@click.option(
    "--min-percentile",
    type=click.FloatRange(0, 100),
    metavar="P",
    help="Leave out hits with a percentile below P.",
)
@click.option("--rerank", metavar="MODEL", help="Put the best hits in a new order with this cross-encoder.")
@click.option("--rerank-depth", default=50, show_default=True, help="How many hits --rerank reads.")
@click.option("--exact", is_flag=True, help="Compare with every vector, even if an approximate segment is faster.")
@click.option("--explain", is_flag=True, help="Explain each score, and show the sentence nearest to the question.")
@trust_option
@json_option
def search(
    path: str,
    words: tuple[str, ...],
    k: int,
    where: str | None,
    mode: Mode,
    passages: bool,
    min_score: float | None,
    min_percentile: float | None,
    rerank: str | None,
    rerank_depth: int,
    exact: bool,
    explain: bool,
    trust_remote_code: bool,
    as_json: bool,
) -> int:
    """Rank the documents of INDEX by how near they are to QUERY in meaning.

    The words of a QUERY need no quotation marks, except where a shell gives a character another meaning. If QUERY is -,
    questions are read from standard input, one per line. A line that is not UTF-8 is reported, and the others are
    answered.

    \b
    likewise search papers.index "how do vaccines work" -k 5
    likewise search papers.index "rate limits" --where 'year >= 2020' --json
    likewise search papers.index - < questions.txt
    """
    from indexer.errors import BadInput, NoWords
    from search.hits import Hits
    from search.query import Query
    from search.searcher import Searcher

    query = _joined(words)
    # OpenVINO works without its converter, whose import (with telemetry) takes 60 ms.
    sys.modules.setdefault("openvino.tools.ovc", None)  # type: ignore[arg-type]
    condition = resolve_where(where)
    code = 0
    with Searcher(path, trust_remote_code=trust_remote_code) as searcher:
        questions: Iterable[str | bytes] = sys.stdin.buffer if query == "-" else [query]
        for number, line in enumerate(questions, 1):
            try:
                question = line if isinstance(line, str) else line.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                warn(f"-:{number}: the question is not UTF-8 at byte {error.start + 1} and was not asked: convert it")
                code = 1
                if as_json:  # one object for each question
                    shown = error.object.decode("utf-8", "replace").strip()
                    print_hits(Hits((), 0, True, shown, mode), as_json)
                continue
            if query == "-" and not question:
                continue
            try:
                hits = searcher.answer(
                    Query(
                        text=question,
                        k=k,
                        where=condition,
                        mode=mode,
                        passages=passages,
                        min_score=min_score,
                        exact=exact,
                        min_percentile=min_percentile,
                        rerank=rerank,
                        rerank_depth=rerank_depth,
                        explain=explain,
                    )
                )
            except NoWords as error:
                if query != "-":
                    raise
                # The next questions are still asked.
                hits = Hits((), 0, True, question, mode, notes=(f"-:{number}: {error}",))
            except BadInput as error:
                if query != "-":
                    raise
                raise BadInput(f"-:{number}: {error}") from error
            if query == "-" and not as_json:
                say(question)
            print_hits(hits, as_json, explain)
    return code


def _joined(words: tuple[str, ...]) -> str:
    """Return the question that was typed as one argument or as several words.

    Raises:
        UsageError: there is none, or the arguments may be several questions.
    """
    context = click.get_current_context()
    if not words:
        raise click.UsageError("Missing argument 'QUERY'.", context)
    if len(words) == 1:
        return words[0]
    if "-" in words or any(not word or any(character.isspace() for character in word) for word in words):
        several = " ".join(f'"{word}"' for word in words)
        raise click.UsageError(
            f"{several} is not one question: put it into quotation marks as a whole, or write one per line and give -",
            context,
        )
    return " ".join(words)
