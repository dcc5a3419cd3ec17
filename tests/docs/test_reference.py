"""docs/reference.md is what the program says of itself today, and the program says something of everything."""

from __future__ import annotations

from docs.reference import PAGE, commands, options, page
from search.cli import _COMMANDS


def test_the_page_is_what_the_program_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_every_command_is_documented_with_usage_and_an_example() -> None:
    text = page()
    assert list(commands()) == list(_COMMANDS)
    for name in _COMMANDS:
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
