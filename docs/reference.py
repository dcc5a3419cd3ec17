"""Writes docs/reference.md from the help texts of the program: `python -m docs.reference`, or `make docs`.

To explain something on that page, explain it in the help text of its command.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from likewise.shell import cli
from likewise.shell.arguments.options import RareOption
from likewise.shell.program import GROUPS

PAGE = Path(__file__).with_name("reference.md")

_INTRODUCTION = """\
# Reference

Written by `make docs` from the help texts of the program.

Every command has `--help`. If `LIKEWISE_INDEX` is set, INDEX is left out; `--index PATH` takes precedence over both.
Without all three, `.likewise` of this folder or of the nearest one above is used ([At the terminal](terminal.md)).
Results go to standard output; progress, warnings and errors go to standard error.
[Exit codes](operations.md#exit-codes) are the same for all."""

_RANGE = r"(?:[\d.-]+<=?)?x(?:[<>]=?[\d.-]+)?"
_BRACKETS = re.compile(rf" *\[(?:default: )?(?P<default>(?!{_RANGE}\])[^][]+?)?(?:; )?(?P<range>{_RANGE})?\]$")
"""The brackets at the end of an option's help, from the help text or from click: `default: 64; x>=1` or `x>=1`."""


def commands() -> dict[str, click.Command]:
    """Return every command of the program by name, in the order of --help."""
    context = click.Context(cli, info_name="likewise")
    by_name = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {name: command for name, command in by_name.items() if command is not None}


def options(command: click.Command) -> list[click.Option]:
    """Return the options of a command in order, without --help."""
    return [option for option in command.params if isinstance(option, click.Option) and not option.hidden]


def page() -> str:
    """Return the whole page."""
    by_name = commands()
    contents = "\n".join(
        textwrap.fill(
            f"* **{group}**: " + " · ".join(f"[{name}](#likewise-{name})" for name in names),
            120,
            break_long_words=False,
            break_on_hyphens=False,
            subsequent_indent="  ",
        )
        for group, names in GROUPS.items()
    )
    sections = (f"## likewise {name}\n\n" + "\n\n".join(_blocks(name, command)) for name, command in by_name.items())
    return "\n\n".join([_INTRODUCTION, contents, *sections]) + "\n"


def _blocks(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"likewise {name}")
    yield f"```\nlikewise {name} {' '.join(command.collect_usage_pieces(context))}\n```"
    # As in click's help, a paragraph that begins with \b keeps its lines: these are the examples.
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines = paragraph.removeprefix("\b\n")
        language = "sh" if lines.startswith("likewise ") else ""
        yield paragraph if lines == paragraph else f"```{language}\n{textwrap.dedent(lines)}\n```"
    for rare in (False, True):
        listed = [option for option in options(command) if isinstance(option, RareOption) == rare]
        if listed:
            head = "rarely needed" if rare else "option"
            rows = "\n".join(_row(option, context) for option in listed)
            yield f"| {head} | meaning | default |\n| --- | --- | --- |\n{rows}"


def _row(option: click.Option, context: click.Context) -> str:
    written, text = option.get_help_record(context) or ("", "")
    meaning, default, bounds = " ".join(text.split()), "", ""
    while brackets := _BRACKETS.search(meaning):
        meaning = meaning[: brackets.start()]
        default, bounds = brackets["default"] or default, brackets["range"] or bounds
    meaning += f" ({bounds})" if bounds else ""
    return "| {} | {} | {} |".format(*(cell.replace("|", "\\|") for cell in (f"`{written}`", meaning, default)))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
