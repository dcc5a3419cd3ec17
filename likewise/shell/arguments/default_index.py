"""The index that a command line means: the INDEX that it names, or `.likewise/` in this folder or the nearest
parent."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from indexer.errors import StorageError
from likewise.shell.terminal.output import quoted, say

DEFAULT_NAME = ".likewise"
"""Folder of the default index. Its name begins with a dot, so that it is never read as a source."""


def find_default() -> str | None:
    """Return the path of the default index, relative if it is in the working folder; None if there is no default
    index."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if names_index(str(folder / DEFAULT_NAME)):
            return DEFAULT_NAME if folder == here else str(folder / DEFAULT_NAME)
    return None


def indexes_to_serve(arguments: Sequence[str]) -> dict[str, str]:
    """Return name and address of the indexes of `serve` and `mcp`: those named, or LIKEWISE_INDEX, or the default one.

    Raises:
        UsageError: there is none.
    """
    from likewise.federation.index_names import addresses_by_name

    arguments = arguments or [*filter(None, [os.environ.get("LIKEWISE_INDEX") or find_default()])]
    if not arguments:
        raise click.UsageError("name the INDEX to serve, or set LIKEWISE_INDEX", click.get_current_context())
    return addresses_by_name(arguments)


def names_index(argument: str) -> bool:
    """Return whether an argument is a DSN, or the folder of an index, which may be damaged or closed to this user."""
    from indexer.stores.addresses.open import is_store, is_uri

    if is_uri(argument):
        return True
    try:
        return bool(argument) and is_store(argument)
    except StorageError:  # opening it reports the reason
        return True
    except OSError:  # a question may be too long for the name of a file
        return False


def complete(
    context: click.Context, arguments: list[str], positionals: Sequence[str], count: tuple[int, int | None]
) -> list[str]:
    """Return the arguments of a reading command with INDEX in front: as typed, or the default index.

    Args:
        arguments: everything that was typed after the command.
        positionals: the arguments that are neither options nor values of options.
        count: minimum and maximum number of arguments after INDEX; None is any number.

    Raises:
        UsageError: no index is meant, or the arguments are swapped.
    """
    least, most = count
    first = positionals[0] if positionals else ""
    if names_index(first):
        return arguments
    if len(positionals) > 1 and names_index(positionals[-1]):
        if _is_index_name(first):
            raise _two_indexes(context, first, positionals[-1])
        raise swapped(context, positionals)
    is_question = most is None and not least
    if is_question and len(positionals) > 1 and _is_index_name(positionals[-1]) and not _looks_like_index(first):
        raise _missing(context, positionals[-1])
    default = find_default()
    too_many = most is not None and len(positionals) > most
    if default is not None and not too_many and not (most is None and _is_index_name(first)):
        return [default, *arguments]
    if too_many or (len(positionals) > least and (most is not None or _looks_like_index(first))):
        return arguments  # the first one was meant as INDEX; opening it reports what is wrong with it
    raise click.UsageError(_no_index(context, first if len(positionals) > least else ""), context)


def complete_writer(
    context: click.Context, arguments: list[str], positionals: Sequence[str], *, needs_source: bool
) -> list[str]:
    """Return the arguments of `index` or `watch` with INDEX in front: one SOURCE alone goes into the default index.

    Args:
        needs_source: whether the command cannot use the recorded sources.

    Raises:
        UsageError: there is no SOURCE, or the arguments are swapped.
    """
    name = context.info_name
    if not needs_source and (not positionals or [names_index(each) for each in positionals] == [True]):
        return complete(context, arguments, positionals, (0, 0))
    if not positionals:
        raise click.UsageError(f"name a SOURCE: likewise {name} FOLDER, or likewise {name} INDEX SOURCE...", context)
    first, last = positionals[0], positionals[-1]
    if len(positionals) == 1 and not names_index(first):
        address = find_default() or DEFAULT_NAME
        if address != DEFAULT_NAME:
            say(f"likewise: the index is {address}", err=True)  # nothing in this folder shows that
        return [address, *arguments]
    if len(positionals) == 1:
        index = quoted(first)
        advice = f"likewise {name} {index} SOURCE..., or likewise update {index} to read its recorded sources again"
        raise click.UsageError(f"{first} is an index, and no SOURCE is named: {advice}", context)
    is_new = _is_index_name(last) and not Path(last).exists()
    if (names_index(last) or is_new) and Path(first).exists() and not names_index(first):
        raise swapped(context, positionals)
    return arguments


def swapped(context: click.Context, positionals: Sequence[str]) -> click.UsageError:
    """Return the error for an INDEX that is the last argument and not the first."""
    *others, last = positionals
    command = " ".join(["likewise", str(context.info_name), *map(shlex.quote, (last, *others))])
    what = "is one" if names_index(last) else "has the name of one"
    message = f'"{others[0]}" is not an index, but "{last}" {what}: INDEX comes first: {command}'
    return click.UsageError(message, context)


def _two_indexes(context: click.Context, first: str, last: str) -> click.UsageError:
    """Return the error for a missing index that is followed by another index where no index belongs."""
    return click.UsageError(
        f'there is no index "{first}", and "{last}" is an index too: name one INDEX, which comes first, as in likewise '
        f"{context.info_name} {last} ..., and check the name {first}",
        context,
    )


def _missing(context: click.Context, last: str) -> click.UsageError:
    """Return the error for a question whose last word was meant as INDEX, although there is no such index."""
    return click.UsageError(
        f'"{last}" is not an index, and INDEX comes first: name one that exists, as in likewise {context.info_name} '
        f"papers.index ..., or put the question into quotation marks if {last} belongs to it",
        context,
    )


def _looks_like_index(argument: str) -> bool:
    """Return whether an argument that is not an index was probably meant as one."""
    if any(character.isspace() for character in argument):
        return False
    return _is_index_name(argument) or argument.startswith((os.sep, "./", "../", "~"))


def _is_index_name(argument: str) -> bool:
    return argument.endswith(".index") and not any(character.isspace() for character in argument)


def _no_index(context: click.Context, first: str) -> str:
    name = f'"{first}" is not an index, and there is no' if first else "which INDEX? There is no"
    return (
        f"{name} {DEFAULT_NAME} in this folder or above it: make one here with likewise index SOURCE, or name the "
        f"INDEX first, as in likewise {context.info_name} papers.index ..., or set LIKEWISE_INDEX"
    )
