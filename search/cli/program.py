"""The command `likewise`: every command by name, loaded when it is called, and how any of them ends."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import Any, NoReturn, TextIO

import click

from indexer.errors import LikewiseError, check_system
from search.cli.output import FINISHES, LEFT, colour, discard, prepare_streams, say, warn

COMMANDS = (
    "index",
    "search",
    "similar",
    "show",
    "list",
    "remove",
    "info",
    "check",
    "compact",
    "compile",
    "backup",
    "export",
    "evaluate",
    "tune",
    "expect",
    "diff",
    "tokens",
    "embed",
    "model",
    "compare",
    "pairs",
)

_NAMES = {"index": "index_command", "compile": "compile_command", "list": "list_command"}


_WORK = frozenset({"index", "remove", "check", "compact", "compile", "backup", "tune", "expect"})
"""Commands that finish when nobody reads what they print: they change something, or answer by their exit code."""

_READER_LEFT = 141  # as a shell says of a program that SIGPIPE ended


class _Lazy(click.Group):
    """Imports a command's file when the command is asked for, so that help costs nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = getattr(import_module(f"search.cli.{cmd_name}"), _NAMES.get(cmd_name, cmd_name))
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Whole sentences: click would cut them to fit one line."""
        rows = [(name, self._summary(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _summary(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=200) if command else ""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except BrokenPipeError:  # before click sees it, which would exit 1
            _reader_left()

    def invoke(self, ctx: click.Context) -> Any:
        try:
            code = super().invoke(ctx)
        except BrokenPipeError:
            _reader_left()
        # Who follows --stream may leave when it has seen enough; the run still ended as it did.
        return code or (_READER_LEFT if ctx.meta.get(LEFT) and ctx.invoked_subcommand != "index" else 0)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="likewise")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Search your own documents by meaning.

    \b
    likewise index papers.index ~/papers          make or update an index
    likewise search papers.index "how do vaccines work"
    """
    ctx.meta[FINISHES] = ctx.invoked_subcommand in _WORK


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    0 done, 1 done with failures, 2 bad input, 3 could not run, 130 interrupted, 141 the reader left before the end.
    """
    warnings.showwarning = _show_warning
    prepare_streams()
    try:
        check_system()
        code = cli.main(args=arguments, prog_name="likewise", standalone_mode=False, color=colour())
        sys.stdout.flush()
        _exit(code if isinstance(code, int) else 0)
    except LikewiseError as error:
        _fail(str(error), error.exit_code, getattr(error, "caret", ""))
    except click.ClickException as error:
        try:
            error.show()
        except BrokenPipeError:
            discard(sys.stderr)
        _exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        say("likewise: interrupted; what was committed is kept", err=True)
        _exit(130)
    except BrokenPipeError:
        _reader_left()
    except OSError as error:  # most often a full disk behind the output
        what = error.filename or "standard output or a file"
        _fail(f"{what}: {error.strerror or error}; mend that and run again", 3)
    except Exception as error:
        if os.environ.get("LIKEWISE_DEBUG"):
            raise
        _fail(f"internal error: {type(error).__name__}: {error} (LIKEWISE_DEBUG=1 shows where)", 3)


def _reader_left() -> NoReturn:
    """The reader of our output has gone; that is its right. Nothing more may be flushed to it."""
    discard(sys.stdout)
    _exit(_READER_LEFT)


def _fail(message: str, code: int, caret: str = "") -> NoReturn:
    say(f"likewise: error: {message}{caret}", err=True)
    _exit(code)


def _exit(code: int) -> NoReturn:
    sys.exit(code)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> Any:
    if issubclass(category, UserWarning):
        warn(str(message))
