"""Options and arguments that several commands share: INDEX or LIKEWISE_INDEX, --json, uris as a person types them."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from indexer.errors import BadInput
from likewise.shell.terminal.output import shown

if TYPE_CHECKING:
    from indexer.filters.tree import Value, Where


class RareOption(click.Option):
    """An option that few people need: the help lists it below the others."""


rare = partial(click.option, cls=RareOption)
"""`click.option` for options that few people need."""


class HelpfulCommand(click.Command):
    """A command whose help has a separate part for options that few people need."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, is_rare in (("Options", False), ("Rarely needed", True)):
            options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
            records = [option.get_help_record(ctx) for option in options if isinstance(option, RareOption) == is_rare]
            if rows := [record for record in records if record is not None]:
                with formatter.section(title):
                    formatter.write_dl(rows)


k_option = click.option("-k", default=10, show_default=True, metavar="N", help="How many hits to print.")
where_option = click.option(
    "--where",
    metavar="FILTER",
    help="""Only documents that match, such as 'year >= 2020 and lang in ("en", "de")', 'modified >= -7d' or """
    """'under "notes" and title like "%bread%"'. Joined by and, or, not and ( ); compared by = != < <= > >= in """
    "exists contains startswith endswith like.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
like_option = click.option(
    "--like", multiple=True, metavar="URI", help="Also rank by nearness to this document (itself no hit). Repeatable."
)
fold_option = click.option(
    "--fold/--no-fold",
    default=None,
    help="Print one hit for each family of hits with nearly the same passage.  [default: on a terminal]",
)
newer_option = rare(
    "--newer",
    metavar="90d[:FIELD]",
    help="Prefer newer documents: a score halves for each 90 days of age. Dates are those of FIELD, or else modified.",
)
_file = click.Path(exists=True, dir_okay=False, path_type=Path)
queries_option = click.option(
    "--queries", required=True, type=_file, metavar="FILE", help="Questions: JSON lines with _id and text."
)
qrels_option = click.option("--qrels", required=True, type=_file, metavar="FILE",
                            help="Judgments: query-id, corpus-id, score; or TREC's four columns.")  # fmt: skip
mode_option = click.option("--mode", type=click.Choice(["dense", "words", "hybrid"]), default="dense",
                           show_default=True, help="Rank by meaning, by words (BM25), or by both.")  # fmt: skip
glob_option = click.option(
    "--glob", multiple=True, metavar="G", help="In folders, read only files that match G, such as '*.md'. Repeatable."
)
prune_option = click.option("--prune", is_flag=True, help="Remove documents that are no longer in their SOURCE.")
prune_yes_option = click.option("--yes", is_flag=True, help="Allow --prune to remove more than half of the index.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Print what --prune would remove, and write nothing.")
no_ignore_option = click.option(
    "--no-ignore", is_flag=True, help="Also read what .gitignore, .likewiseignore and the default list leave out."
)
rehash_option = rare("--rehash", is_flag=True, help="Read every file, even if its size and time have not changed.")
no_cache_option = rare("--no-cache", is_flag=True, help="Embed without the cache of vectors (likewise cache).")
recall_option = rare(
    "--recall",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="R",
    help="Share of the ten nearest passages that an approximate segment must find.  [default: 0.98]",
)
shards_option = rare(
    "--shards",
    type=click.IntRange(min=0),
    metavar="N",
    help="Shards of a new index in a database with Citus; 0: plain tables.  [default: one for each node]",
)


def _checked_device(context: click.Context, parameter: click.Parameter, device: str) -> str:
    """Refuse a device that this machine does not have, even if nothing is computed. A worker may have CUDA alone."""
    if device not in ("auto", "cpu", "cuda"):
        from indexer.encoders.machine.hardware import choose_device

        choose_device(device)
    return device


device_option = rare("--device", default="auto", show_default=True, metavar="D", callback=_checked_device,
                     help="Device: cpu, cuda, mps, ...")  # fmt: skip
trust_option = rare(
    "--trust-remote-code", is_flag=True, help="Run Python code that comes with the model. Only if you trust its author."
)
query_prompt_option = rare(
    "--query-prompt", metavar="TEXT", help="Text put before each question.  [default: the model's own]"
)
document_prompt_option = rare(
    "--document-prompt", metavar="TEXT", help="Text put before each document.  [default: the model's own]"
)
no_wait_option = rare("--no-wait", is_flag=True, help="Fail at once if another process is writing.")


_MAX_SPELLINGS = 64
"""Maximum spellings of a path that are looked up: those of six names with accents."""

_NAMED_URIS = 10
INDEXES = "likewise.indexes"
"""Key of click's `Context.meta`: the paths that were given with --index, or LIKEWISE_INDEX."""


class IndexCommand(HelpfulCommand):
    """A command whose first argument INDEX may also come from --index, from LIKEWISE_INDEX, or be the default index.

    Attributes:
        creates: INDEX may be new; then a SOURCE alone goes into the default index.
        asks_several: --index may be given several times.
        configurable: names of the parameters that configuration files may set.
    """

    creates = False
    asks_several = False
    configurable: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.insert(0, click.Argument(["path"], metavar="[INDEX]", shell_complete=complete_path))
        self.params.append(
            click.Option(
                ["--index", "_index"],
                metavar="PATH",
                expose_value=False,
                help="The index, in place of the INDEX argument or LIKEWISE_INDEX."
                + self.asks_several * " Several are asked together.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        typed = list(args)
        try:
            return self._parse(ctx, args)
        except click.NoSuchOption as error:
            dashed = next((each for each in typed if each.startswith(error.option_name) and len(each) > 2), "")
            if dashed.startswith("--") and not os.path.lexists(dashed):
                raise
            hint = self._hint(typed, error.option_name)
            if not hint and dashed:
                hint = f"if {dashed} is a file, write ./{dashed}"
            hint = hint or "an argument that begins with - follows --"
            raise click.UsageError(f"{error.format_message()} ({hint})", ctx) from error

    def _hint(self, typed: list[str], option: str) -> str:
        """Return what the user may have meant by an argument that looks like an unknown option; usually empty."""
        return ""

    def _parse(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        if ctx.resilient_parsing or not {"-h", "--help"}.isdisjoint(args[:end]):
            return super().parse_args(ctx, args)
        if self.configurable:
            from likewise.shell.arguments.configuration import read_configuration

            settings = read_configuration()
            ctx.default_map = {name: settings[name] for name in self.configurable if name in settings}
        paths = _take_indexes(args) or [*filter(None, [os.environ.get("LIKEWISE_INDEX")])]
        if len(paths) > 1 and not self.asks_several:
            raise click.UsageError(f"{self.name} takes one index: {' and '.join(paths)} are several", ctx)
        if paths:
            ctx.meta[INDEXES] = paths
            return super().parse_args(ctx, [paths[0], *args])
        from likewise.shell.arguments.default_index import complete, complete_writer

        positionals = self._positionals(ctx, args)
        if self.creates:
            args = complete_writer(ctx, args, positionals, needs_source=self._count()[0] > 0)
        else:
            args = complete(ctx, args, positionals, self._count())
        return super().parse_args(ctx, args)

    def _positionals(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the arguments that are neither options nor their values."""
        options = [parameter for parameter in self.params if isinstance(parameter, click.Option)]
        _, positionals, _ = click.Command(self.name, params=list(options)).make_parser(ctx).parse_args(list(args))
        return positionals

    def _count(self) -> tuple[int, int | None]:
        """Return the minimum and maximum number of arguments after INDEX; None is any number."""
        arguments = [parameter for parameter in self.params if isinstance(parameter, click.Argument)][1:]
        least = sum(1 for argument in arguments if argument.required)
        return least, None if any(argument.nargs < 0 for argument in arguments) else len(arguments)


class SourceCommand(IndexCommand):
    """A command that creates or updates INDEX from sources."""

    creates = True
    configurable = ("model", "language")


class RankingCommand(IndexCommand):
    """A command that prints hits."""

    configurable = ("mode", "k")


def unless_configured(address: str, *, model: str | None, language: str | None) -> tuple[str | None, str | None]:
    """Return model and language, without the configured values for new indexes if this index exists. The model is None
    if the texts choose it."""
    from indexer.indexing.new_index import AUTO_MODEL
    from indexer.stores.addresses.open import is_store

    model = None if model == AUTO_MODEL else model
    context = click.get_current_context()
    typed = {name: context.get_parameter_source(name) != ParameterSource.DEFAULT_MAP for name in ("model", "language")}
    if all(typed.values()) or not is_store(address):
        return model, language
    return model if typed["model"] else None, language if typed["language"] else None


def _take_indexes(args: list[str]) -> list[str]:
    """Remove each --index PATH or --index=PATH from the arguments and return the paths."""
    paths, position = list[str](), 0
    while position < len(args) and args[position] != "--":
        if args[position].startswith("--index="):
            paths.append(args.pop(position).partition("=")[2])
        elif args[position] == "--index" and args[position + 1 : position + 2] not in ([], ["--"]):
            _, path = args.pop(position), args.pop(position)
            paths.append(path)
        else:
            position += 1
    return paths


def complete_path(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete the path of a file or folder."""
    return [CompletionItem(incomplete, type="file")]


def resolve_uris(index: Container[str], uris: Sequence[str]) -> list[str]:
    """Return uris as stored: a path relative to the working folder becomes the absolute path of an indexed file, and an
    accent is composed or not as the stored uri has it."""
    names = [(uri, path, *_spellings(uri), *_spellings(path)) for uri in uris for path in (os.path.abspath(uri),)]  # noqa: PTH100
    return [next((name for name in each if name in index), each[0]) for each in names]


def _spellings(path: str) -> list[str]:
    """Return a path with each name in it as given, composed (NFC), and decomposed (NFD), as macOS writes names."""
    parts = [dict.fromkeys((name, normalize("NFC", name), normalize("NFD", name))) for name in path.split("/")]
    return ["/".join(names) for names in islice(product(*parts), _MAX_SPELLINGS)]


def resolve_uri(index: Container[str], address: str, uri: str) -> str:
    """Return a uri as stored: as `resolve_uris` does, or else the path of a file with documents, or the only stored uri
    or path that ends with these folders and file.

    Raises:
        BadInput: several uris or paths end with these names.
    """
    from indexer.filters.tree import In
    from indexer.records import broken_at
    from indexer.stores.addresses.open import open_store

    stored = resolve_uris(index, [uri])[0]
    if stored in index or not uri or broken_at(uri) is not None:
        return stored
    with closing(open_store(address)) as store, store.snapshot() as snapshot:
        if paths := snapshot.paths(In("path", tuple(stored_names(uri)))):
            return min(paths, key=stored_names(uri).index)  # the spelling as given comes first
        names = dict.fromkeys((*snapshot.uris(), *snapshot.paths()))
    end = normalize("NFC", os.sep + uri.lstrip(os.sep))
    ends = [each for each in names if normalize("NFC", each).endswith(end)]
    if len(ends) > 1:
        named = "\n".join(f"  {shown(each)}" for each in sorted(ends)[:_NAMED_URIS])
        more = f"\n  and {len(ends) - _NAMED_URIS} more" if len(ends) > _NAMED_URIS else ""
        raise BadInput(f"{uri}: {len(ends)} documents end with this; name one of them:\n{named}{more}")
    return ends[0] if ends else stored


def resolve_where(where: str | None) -> Where | None:
    """Return a filter in which a path relative to the working folder, as hits show it, also matches the absolute
    path."""
    if where is None:
        return None
    from indexer.filters.parse import parse

    return _resolve(parse(where))


def _resolve(tree: Where) -> Where:
    from indexer.filters.tree import And, Compare, In, Not, Or, Under

    match tree:
        case And(parts) | Or(parts):
            return replace(tree, parts=tuple(map(_resolve, parts)))
        case Not(part):
            return Not(_resolve(part))
        # All are allowed, because a record may have the name of a file in this folder.
        case Compare("uri" | "path" as name, "=" | "!=" as op, value) if (names := stored_names(value)) != [value]:
            return In(name, tuple(names), op == "!=")
        case In("uri" | "path", values):
            return replace(tree, values=tuple(dict.fromkeys(name for value in values for name in stored_names(value))))
        case Under(folder) if len(folders := _spellings(folder)) > 1:
            return Or(tuple(map(Under, folders)))
    return tree


def stored_names(value: Value) -> list[Value]:
    """Return what a uri or path of a filter may be stored as: its spellings, each with the absolute path of a file or
    of a folder, which may be a mailbox."""
    if not isinstance(value, str):
        return [value]
    names = _spellings(value)
    paths = (os.path.abspath(name) for name in names if os.path.exists(name))  # noqa: PTH100, PTH110
    return list(dict.fromkeys([*names, *paths]))
