"""The options of commands that embed on workers: --workers and --worker-resources."""

from __future__ import annotations

import re
from importlib.util import find_spec

import click

from indexer import doors
from indexer.errors import BadInput
from likewise.shell.arguments.options import rare


def _named(context: click.Context, option: click.Parameter, named: str | None) -> str | None:
    """Return --workers. Raises BadParameter unless it is a number of processes or a Ray cluster."""
    if named is None or re.fullmatch(r"[1-9][0-9]{0,2}|ray|ray://[^/\s]+:[0-9]+", named):
        return named
    raise click.BadParameter(f"{named!r:.40} is not a number of processes: give 1 to 999, ray or ray://HOST:PORT")


workers_option = rare(
    "--workers",
    metavar="N|ray|ray://HOST:PORT",
    callback=_named,
    help="Embed in N processes here, one for each GPU, or on a Ray cluster.",
)
worker_resources_option = rare(
    "--worker-resources",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Resources of the Ray cluster that each worker takes, such as GPU=1. Repeatable.",
)


def resources_of(workers: str | None, given: tuple[str, ...]) -> dict[str, float]:
    """Return --worker-resources. Raises BadInput without Ray, or without its extra."""
    from likewise.shell.terminal.extras import missing_extra

    if workers is None or workers.isdecimal():
        if given:
            raise BadInput("--worker-resources is for the machines of a Ray cluster: add --workers ray")
        return {}
    if find_spec("ray") is None:
        raise missing_extra(ModuleNotFoundError(name="ray"), "ray")
    resources: dict[str, float] = doors.require("parts", "workers", "--worker-resources").parse_resources(given)
    return resources
