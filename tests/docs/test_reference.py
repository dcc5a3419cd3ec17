"""docs/reference.md is up to date, and every command and option has a help text."""

from __future__ import annotations

import click

from docs.reference import PAGE, _row, commands, options, page
from likewise.shell.program import COMMANDS


def test_the_page_is_what_the_program_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_every_command_is_documented_with_usage_and_an_example() -> None:
    text = page()
    assert list(commands()) == list(COMMANDS)
    for name in COMMANDS:
        section = text.partition(f"\n## likewise {name}\n")[2].partition("\n## ")[0]
        assert f"```\nlikewise {name} [OPTIONS]" in section
        assert f"```sh\nlikewise {name} " in section, name
        for option in options(commands()[name]):
            assert f"| `{option.opts[0]}" in section, option.name


def test_every_command_is_summed_up_in_a_sentence() -> None:
    for name, command in commands().items():
        first = (command.help or "").partition("\n\n")[0]
        assert first.endswith("."), name


def test_every_option_says_what_it_does() -> None:
    silent = [f"{name} {each.opts[0]}" for name, command in commands().items() for each in options(command)
              if not each.help]  # fmt: skip
    assert silent == []


def test_defaults_and_ranges_are_told_apart() -> None:
    text = page()
    for row in (
        "| `--recall R` | Share of the ten nearest passages that an approximate segment must find. (0<x<=1) | 0.98 |",
        "| `--max-file-mb MB` | Skip files and records that are larger. (x>=0.001) | 64 |",
        "| `--text-field F` | Field of a record with its text. | text, body, content, abstract |",
        "| `--format F` | Form of the vectors, npy or jsonl. | by the ending of the file |",
        "| `--queries FILE` | Questions: JSON lines with _id and text. | required |",
        "| `--recipe R` | Recipe to compare, as described above. Repeatable. | required |",
    ):
        assert row in text
    option = click.Option(["-n"], type=click.IntRange(-5, 5), default=-1, show_default=True, help="A number.")
    assert _row(option, click.Context(click.Command("x"))).endswith("| A number. (-5<=x<=5) | -1 |")
