"""Writes docs/reference.md from the program itself: `python -m docs.reference`, or `make docs`.

Everything on that page is what --help says. Nothing is explained here; explain it in the command.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from search.cli import cli

PAGE = Path(__file__).with_name("reference.md")

_INTRODUCTION = """\
# Reference

Written by `make docs` from what `likewise COMMAND --help` says.

Every command takes `--help`. Where `LIKEWISE_INDEX` is set, INDEX is left out; `--index PATH` goes before both.
Results go to standard output, progress, warnings and errors to standard error. Exit codes: 0 done, 1 done but
something failed, 2 wrong usage or bad input, 3 could not run, 130 interrupted, 141 the reader of a
pipe left before the end (`index` finishes all the same, and exits as it ended)."""

_RANGE = r"(?:[\d.-]+<=?)?x(?:[<>]=?[\d.-]+)?"
_BRACKETS = re.compile(rf" *\[(?:default: )?(?P<default>(?!{_RANGE}\])[^][]+?)?(?:; )?(?P<range>{_RANGE})?\]$")
"""What an option's help gives at its end, once of ours and once of click's: `default: 64; x>=1`, `required`, `x>=1`."""


def commands() -> dict[str, click.Command]:
    """Every command of the program by name, in the order of --help."""
    context = click.Context(cli, info_name="likewise")
    found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def options(command: click.Command) -> list[click.Option]:
    """Its options in order, without --help."""
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def page() -> str:
    """The whole page."""
    known = commands()
    links = " · ".join(f"[{name}](#likewise-{name})" for name in known)
    contents = textwrap.fill(links, 120, break_long_words=False, break_on_hyphens=False)
    sections = (f"## likewise {name}\n\n" + "\n\n".join(_blocks(name, command)) for name, command in known.items())
    return "\n\n".join([_INTRODUCTION, contents, *sections]) + "\n"


def _blocks(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"likewise {name}")
    yield f"```\nlikewise {name} {' '.join(command.collect_usage_pieces(context))}\n```"
    # As in click's own help: a paragraph that begins with \b keeps its lines. Here those are the examples.
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines = paragraph.removeprefix("\b\n")
        language = "sh" if lines.startswith("likewise ") else "yaml" if lines.lstrip().startswith("- ") else ""
        yield paragraph if lines == paragraph else f"```{language}\n{textwrap.dedent(lines)}\n```"
    rows = "\n".join(_row(option, context) for option in options(command))
    yield f"| option | meaning | default |\n| --- | --- | --- |\n{rows}"


def _row(option: click.Option, context: click.Context) -> str:
    written, said = option.get_help_record(context) or ("", "")
    meaning, default, bounds = " ".join(said.split()), "", ""
    while found := _BRACKETS.search(meaning):
        meaning = meaning[: found.start()]
        default, bounds = found["default"] or default, found["range"] or bounds
    meaning += f" ({bounds})" if bounds else ""
    return "| {} | {} | {} |".format(*(cell.replace("|", "\\|") for cell in (f"`{written}`", meaning, default)))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
