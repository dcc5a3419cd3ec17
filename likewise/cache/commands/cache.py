"""likewise cache: how large the cache of vectors is, how large it may be, and making it empty."""

from __future__ import annotations

import math
import os

import click

from indexer.errors import StorageError, count_of
from likewise.shell.arguments.options import HelpfulCommand, json_option
from likewise.shell.terminal.output import say, say_json, shown

MAX_GB = 10**6
"""Maximum of --max-gb: more than any disk has, and as bytes still an integer for SQLite."""


@click.command("cache", cls=HelpfulCommand)
@click.option("--clear", is_flag=True, help="Remove all vectors, and the compiled and converted models beside them.")
@click.option("--max-gb", type=click.FloatRange(0, MAX_GB), metavar="N",
              help="Maximum size of the cache from now on. A new cache has 5 GB.")  # fmt: skip
@json_option
def cache_command(clear: bool, max_gb: float | None, as_json: bool) -> None:
    """Show, limit or clear the cache of vectors.

    All indexes of a user share it, and likewise index takes from it what was embedded before. It may be deleted at any
    time.

    \b
    likewise cache --max-gb 20
    likewise cache --clear
    likewise cache
    """
    from likewise.cache.compiled import remove_kept
    from likewise.cache.vector_cache import VARIABLE, VectorCache, is_turned_off

    cache = VectorCache()
    if max_gb is not None and math.isnan(max_gb):  # a range lets it pass
        raise click.UsageError("--max-gb is nan: give a number of gigabytes")
    if clear:
        cache.clear()
        remove_kept()
    if max_gb is not None:
        cache.limit(int(max_gb * 10**9))
    vectors, used, largest = cache.size()
    cache.close()
    if cache.problems:
        raise StorageError(cache.problems[0])
    if as_json:
        say_json({"path": str(cache.path), "vectors": vectors, "bytes": used, "max_bytes": largest})
    else:
        if is_turned_off():
            unused = f"; not used while {VARIABLE} is {os.environ[VARIABLE]}"
        else:
            unused = "" if largest else "; nothing is kept"
        say(
            f"{shown(str(cache.path))}: {count_of(vectors, 'vector')}, {used / 1e9:.3f} of {largest / 1e9:g} GB{unused}"
        )
