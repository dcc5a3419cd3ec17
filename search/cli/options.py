"""Options and arguments that several commands share: INDEX or LIKEWISE_INDEX, --json, uris as a person types them."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from indexer.filters.tree import Value, Where


k_option = click.option("-k", default=10, show_default=True, help="How many hits to print.")
where_option = click.option(
    "--where",
    metavar="FILTER",
    help="""Only documents that match, such as 'year >= 2020 and lang in ("en", "de")' or 'modified >= -7d'.""",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
queries_option = click.option(
    "--queries",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Questions: JSON lines with _id and text.",
)
qrels_option = click.option(
    "--qrels",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Judgments: query-id, corpus-id, score; or TREC's four columns.",
)
mode_option = click.option(
    "--mode",
    type=click.Choice(["dense", "words", "hybrid"]),
    default="dense",
    show_default=True,
    help="Rank by meaning, by words (BM25), or by both.",
)
recall_option = click.option(
    "--recall",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="R",
    help="Share of the ten nearest passages that an approximate segment must find.  [default: 0.98]",
)
trust_option = click.option(
    "--trust-remote-code", is_flag=True, help="Run Python code that comes with the model. Only if you trust its author."
)
no_wait_option = click.option("--no-wait", is_flag=True, help="Fail at once if another process is writing.")


class IndexCommand(click.Command):
    """A command whose first argument INDEX may also come from --index, or else from LIKEWISE_INDEX."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.insert(0, click.Argument(["path"], metavar="INDEX"))
        self.params.append(
            click.Option(
                ["--index", "_index"],
                metavar="PATH",
                expose_value=False,
                help="The index, in place of the INDEX argument or LIKEWISE_INDEX.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        path = _take_index(args) or os.environ.get("LIKEWISE_INDEX")
        if not path and not args:
            raise click.UsageError("name the INDEX first, or set LIKEWISE_INDEX", ctx)
        return super().parse_args(ctx, [path, *args] if path else args)


def _take_index(args: list[str]) -> str | None:
    """Remove --index PATH or --index=PATH from the arguments and return PATH; None where there is none."""
    end = args.index("--") if "--" in args else len(args)
    for position, argument in enumerate(args[:end]):
        if argument.startswith("--index="):
            return args.pop(position).partition("=")[2]
        if argument == "--index" and position + 1 < end:
            _, path = args.pop(position), args.pop(position)
            return path
    return None


def resolve_uris(index: Container[str], uris: Sequence[str]) -> list[str]:
    """Return uris as stored: a path relative to the working folder becomes the absolute path of an indexed file."""
    return [uri if uri in index or (path := os.path.abspath(uri)) not in index else path for uri in uris]  # noqa: PTH100


def resolve_where(where: str | None) -> Where | None:
    """Return a filter in which paths relative to the working folder, as hits show them, also match absolute ones."""
    if where is None:
        return None
    from indexer.filters.parse import parse

    return _resolve(parse(where))


def _resolve(tree: Where) -> Where:
    from indexer.filters.tree import And, Compare, In, Not, Or

    match tree:
        case And(parts) | Or(parts):
            return replace(tree, parts=tuple(map(_resolve, parts)))
        case Not(part):
            return Not(_resolve(part))
        # Both are allowed, because a record may have the name of a file in this folder.
        case Compare("uri" | "path" as name, "=" | "!=" as op, value) if (path := _as_path(value)) != value:
            return In(name, (value, path), op == "!=")
        case In("uri" | "path", values):
            return replace(tree, values=tuple(dict.fromkeys([*values, *map(_as_path, values)])))
    return tree


def _as_path(value: Value) -> Value:
    return os.path.abspath(value) if isinstance(value, str) and os.path.isfile(value) else value  # noqa: PTH100, PTH113
