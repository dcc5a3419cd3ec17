"""likewise search: rank the documents of an index by a question."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from indexer.errors import BadInput, ModelError, NotAnIndex, NoWords, in_shell
from likewise.shell.arguments import options
from likewise.shell.hits.hits import Presentation, folds, print_hits, stem_of
from likewise.shell.terminal.output import printable, quoted, say, shown, warn, warn_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from likewise.shell.hits.context import Surroundings
    from search.hits.hits import Hit, Hits
    from search.query.query import Mode, Query
    from search.searcher import Searcher


_AFTER_DASHES = "likewise.after_dashes"


class SearchCommand(options.RankingCommand):
    """A command whose arguments are a question, in which a word may begin with a hyphen."""

    asks_several = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_AFTER_DASHES] = "--" in args
        return super().parse_args(ctx, args)

    def _hint(self, typed: list[str], option: str) -> str:
        from likewise.shell.arguments.default_index import names_index

        words, options = self._split(typed)
        short = (place for place, each in enumerate(words) if each.startswith("-") and option[1:] in each[1:])
        place = next(short, 0)
        before = [each for each in words[:place] if not each.startswith("-")]
        question = before[1:] if before and names_index(before[0]) else before
        if option.startswith("--"):
            return ""
        if not question and len(words[place]) > len(option) and not os.path.lexists(words[place]):
            return f"a QUERY that begins with a hyphen follows --, as in -- {shlex.quote(words[place])}"
        if not question:
            return ""
        whole = shlex.join([" ".join([*question, *words[place:]]), *options])
        return f"if it is a word, make the question one argument, {whole}, or put -- before it"

    def _split(self, typed: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the words that were typed, and the options with their values."""
        flags = {
            name: parameter.is_flag
            for parameter in self.params
            if isinstance(parameter, click.Option)
            for name in (*parameter.opts, *parameter.secondary_opts)
        }
        words, options, rest = list[str](), list[str](), iter(typed)
        for each in rest:
            if each.partition("=")[0] not in flags:
                words.append(each)
            else:
                options.append(each)
                options += [] if "=" in each or flags[each] else [*islice(rest, 1)]
        return words, options


@click.command(cls=SearchCommand)
@click.argument("words", nargs=-1, metavar="QUERY...")
@options.k_option
@options.where_option
@options.mode_option
@click.option(
    "--passages", is_flag=True, help="Rank passages instead of documents; a document may come more than once."
)
@click.option("--min-score", type=float, metavar="S", help="Leave out hits with a score below S, such as 0.4.")
@click.option("--rerank", metavar="MODEL", help="Put the best hits in a new order with this cross-encoder.")
@options.rare("--rerank-depth", default=50, show_default=True, metavar="N", help="How many hits --rerank reads.")
@options.rare("--exact", is_flag=True, help="Compare with every vector, even if an approximate segment is faster.")
@options.like_option
@options.fold_option
@options.newer_option
@click.option(
    "--literal",
    is_flag=True,
    help='Ask for QUERY as it stands, and read no conditions ("a phrase", +word, -word) in it.',
)
@click.option("--explain", is_flag=True, help="Explain each score, and show the sentence nearest to the question.")
@click.option(
    "-C", "context", type=click.IntRange(0), default=0, metavar="N", help="Print N passages before and after each hit."
)
@click.option("-l", "paths_only", is_flag=True, help="Print only the path of each file with a hit.")
@options.trust_option
@options.json_option
def search(
    path: str,
    words: tuple[str, ...],
    k: int,
    where: str | None,
    mode: Mode,
    like: tuple[str, ...],
    fold: bool | None,
    literal: bool,
    explain: bool,
    context: int,
    paths_only: bool,
    trust_remote_code: bool,
    as_json: bool,
    **ranking: Any,
) -> int:
    """Rank the documents of INDEX by how near they are to QUERY in meaning.

    QUERY needs no quotation marks, unless it has characters with a meaning in your shell. If QUERY is -, questions are
    read from standard input, one per line. Without QUERY, a prompt on the terminal asks for questions.

    If QUERY is one argument or follows --, it may hold conditions. Each hit must hold "a phrase" and +word as they are
    written. It must not hold -word and -"a phrase" if they come after the last plain word. Only the other words are
    ranked by, and words that documents write with a dash, such as -40. With - or --json, QUERY has no conditions.

    \b
    likewise search papers.index "how do vaccines work" -k 5
    likewise search how do vaccines work --where 'year >= 2020' --json
    likewise search papers.index 'how do "mRNA vaccines" work -cancer'
    likewise search papers.index - < questions.txt
    likewise search papers.index
    likewise search --index papers.index --index notes.index "how do vaccines work"
    """
    from likewise.shell.arguments.default_index import names_index
    from search.query.query import Query
    from search.searcher import Searcher

    if not words and not names_index(path):
        Searcher(path)  # says what is wrong with the name, which matters more than the missing question
    paths = click.get_current_context().meta.get(options.INDEXES, [path])
    if other := next(filter(names_index, words), None):
        named = " ".join(f"--index {quoted(each)}" for each in dict.fromkeys((*paths, other)))
        raise click.UsageError(f"{other} is an index: to ask several, write {named}", click.get_current_context())
    query = "" if like and not words else _joined(words)
    if as_json and paths_only:
        raise click.UsageError("--json and -l are different outputs: choose one", click.get_current_context())
    # OpenVINO works without its converter, whose import (with telemetry) takes 60 ms.
    sys.modules.setdefault("openvino.tools.ovc", None)  # type: ignore[arg-type]
    output = _Output(as_json, explain, context, paths_only)
    reads_conditions = len(words) < 2 or click.get_current_context().meta[_AFTER_DASHES]
    ask = partial(
        Query,
        k=k,
        where=options.resolve_where(where),
        mode=mode,
        explain=explain,
        fold=folds(fold if output.for_people and query != "-" else bool(fold)),
        literal=literal or as_json or query == "-" or not reads_conditions,
        **ranking,
    )
    if query is None and (not output.for_people or len(paths) > 1):
        raise click.UsageError("Missing argument 'QUERY'.", click.get_current_context())
    with ExitStack() as stack:
        # For one short text, a second thread takes longer to start than it saves.
        indexes = _Indexes(stack, paths, trust_remote_code, 1 if query not in (None, "-") and not explain else None)
        ask = partial(ask, like=[options.resolve_uri(indexes.first, paths[0], uri) for uri in like])
        if query is None:
            from likewise.shell.hits.prompt import Prompt

            Prompt(indexes.first, ask, partial(output.print, indexes), k=k, mode=mode, where=where).run()
            return 0
        if query != "-":
            output.print(indexes, indexes.answer(ask(text=query)))
            return 0
        return _answer_lines(indexes, ask, mode, output)


class _Indexes:
    """The index that is asked, or several."""

    def __init__(self, stack: ExitStack, paths: Sequence[str], trust_remote_code: bool, threads: int | None) -> None:
        """Open the indexes, until the end of the stack. `threads` compute a question."""
        from search.searcher import Searcher

        named = {"": paths[0]}
        if len(paths) > 1:
            from likewise.federation.index_names import addresses_by_name

            named = addresses_by_name(paths)
        self._searchers = {
            name: stack.enter_context(Searcher(path, trust_remote_code=trust_remote_code))
            for name, path in named.items()
        }
        self.first = next(iter(self._searchers.values()))
        for searcher in self._searchers.values():
            searcher.answering.questions.threads = threads

    def answer(self, query: Query) -> Hits:
        if len(self._searchers) == 1:
            return self.first.answer(query)
        from likewise.federation.several_indexes import answer_together

        return answer_together(self._searchers, query)

    def of(self, hit: Hit) -> Searcher:
        """Return the searcher of the index that holds a hit."""
        return self._searchers[hit.index or ""]


class _Output(NamedTuple):
    """The form in which hits are printed."""

    as_json: bool
    explain: bool
    context: int
    paths_only: bool

    @property
    def for_people(self) -> bool:
        return not (self.as_json or self.paths_only)

    def print(self, indexes: _Indexes, hits: Hits, first_rank: int = 1) -> None:
        """Print hits in the form that was asked for. With -l, each path or uri is printed once."""
        if self.paths_only:
            warn_of(hits.notes)
            for name in dict.fromkeys(shown(hit.path or hit.uri) for hit in hits):
                say(printable(name))
            return
        surroundings = self._surroundings(indexes, hits, first_rank)
        stem = stem_of(indexes.first.language)
        print_hits(hits, self.as_json, Presentation(self.explain, stem, surroundings, first_rank))

    def _surroundings(self, indexes: _Indexes, hits: Hits, first_rank: int) -> dict[int, Surroundings]:
        """Return the neighbours of each hit by its rank, if they were asked for."""
        if not self.context:
            return {}
        from likewise.shell.hits.context import surroundings_of

        return {rank: surroundings_of(indexes.of(hit), hit, self.context) for rank, hit in enumerate(hits, first_rank)}


def _answer_lines(indexes: _Indexes, ask: Callable[..., Query], mode: Mode, output: _Output) -> int:
    """Answer the questions of standard input, one per line; return the exit code."""
    from search.hits.hits import Hits

    code = 0
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            question = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            warn(f"-:{number}: the question is not UTF-8 at byte {error.start + 1} and was not asked: convert it")
            code = 1
            if output.as_json:  # one object for each question
                shown = error.object.decode("utf-8", "replace").strip()
                print_hits(Hits((), 0, True, shown, mode), as_json=True)
            continue
        if not question:
            continue
        try:
            hits = indexes.answer(ask(text=question))
        except NoWords as error:  # the next questions are still asked
            hits = Hits((), 0, True, question, mode, notes=(f"-:{number}: {in_shell(error)}",))
        except (BadInput, ModelError, NotAnIndex) as error:
            raise BadInput(f"-:{number}: {in_shell(error)}") from error
        if output.for_people:
            say(question)
        output.print(indexes, hits)
    return code


def _joined(words: tuple[str, ...]) -> str | None:
    """Return the question that was typed as one argument or as several words; None if a prompt will ask for it.

    Raises:
        UsageError: there is no question, or the arguments may be several questions.
    """
    context = click.get_current_context()
    if not words:
        from likewise.shell.hits.prompt import can_prompt

        if can_prompt():
            return None
        raise click.UsageError("Missing argument 'QUERY'.", context)
    if len(words) == 1:
        return words[0]
    if "-" in words or any(not word or any(character.isspace() for character in word) for word in words):
        several = " ".join(f'"{word}"' for word in words)
        hint = "put it into quotation marks as a whole, or write one per line and give -"
        if Path(words[0]).is_dir():
            hint = f"{words[0]} is a folder but not an index; likewise index NAME.index {words[0]} makes one of it"
        raise click.UsageError(f"{several} is not one question: {hint}", context)
    return " ".join(words)
