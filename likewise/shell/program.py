"""The command `likewise`: its subcommands by name, each imported when it is called, and the exit codes."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import threading
import warnings
from types import FrameType
from typing import Any, NoReturn, TextIO

import click

from indexer import doors
from indexer.errors import LikewiseError, check_system, in_shell
from likewise.shell.terminal.output import FINISHES, LEFT, colour, discard, prepare_streams, say, warn

GROUPS = {
    "Use": ("open", "index", "search", "similar", "show", "list", "update", "serve"),
    "Leave running": ("watch", "mcp"),
    "Look after": ("status", "info", "remove", "check", "compact", "copy", "migrate", "compile", "cache", "doctor"),
    "Measure": ("evaluate", "compare", "tune"),
    "Look inside": ("tokens", "model", "embed", "pairs", "map", "export"),
}
"""The commands by what a person wants, in the order of the help: frequent ones first.

The help of a new user has the first group alone. These commands make an index, ask it, read what it holds, and keep it
up to date.
"""

_LISTS_ALL = "likewise.lists_all"
"""Key of a click context's meta: the help lists every command."""

COMMANDS = tuple(name for names in GROUPS.values() for name in names)

_LONGEST_NAME = max(map(len, COMMANDS))

_FINISHING = frozenset(
    {"index", "update", "open", "watch", "remove", "check", "compact", "compile", "migrate", "cache", "copy", "tune"}
)
"""Commands that finish even if nobody reads their output, because they change something or answer by their exit
code."""

_READER_LEFT = 141  # a shell's exit code for a program that was ended by SIGPIPE

_LACKS_MEMORY = (
    "cannot allocate memory",
    "can't alloc",
    "failed to allocate",
    "failed to map segment",
    "std::bad_alloc",
)
"""Texts in errors of the system, its library loader and C++ libraries if there is too little memory."""


class _LazyGroup(click.Group):
    """Imports a command's file when the command is called or described. Commands of missing parts are left out."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *_of_others()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command | None = doors.find("commands", cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in COMMANDS:
            doors.require("commands", name, f"likewise {name}")
        elif not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(f'there is no command "{name}"{_meant(name)}', ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups with the first sentence of each command's help, which click would cut to one line.

        A person at a terminal gets the first group, unless they ask for all. A program or a pager gets all groups.
        """
        is_short = sys.stdout.isatty() and _LISTS_ALL not in ctx.meta
        for title, names in [*GROUPS.items(), ("Of other packages", _of_others())][: 1 if is_short else None]:
            rows = [(f"{name:<{_LONGEST_NAME}}", text) for name in names if (text := self._summary(ctx, name))]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if is_short:
            formatter.write("\nMore commands: likewise --help --all\n")

    def _summary(self, ctx: click.Context, name: str) -> str:
        """Return a sentence on a command; nothing if its part is missing. A broken package must not end the help."""
        try:
            command = self.get_command(ctx, name)
        except (ImportError, AttributeError) as error:
            return f"Cannot be loaded ({error})."
        return command.get_short_help_str(limit=200) if command else ""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        if "--all" in args and {*args} <= {"--all", *self.get_help_option_names(ctx)}:
            args = ["--all"]  # click would answer --help before it reads the rest
        try:
            return super().parse_args(ctx, args)
        except BrokenPipeError:  # caught here, because click would exit with 1
            _exit_without_reader()

    def invoke(self, ctx: click.Context) -> Any:
        try:
            code = super().invoke(ctx)
        except BrokenPipeError:
            _exit_without_reader()
        # A reader of `index --stream` may leave when it has seen enough: the run's own exit code is kept.
        return code or (_READER_LEFT if ctx.meta.get(LEFT) and ctx.invoked_subcommand not in ("index", "update") else 0)


def _of_others() -> tuple[str, ...]:
    """Return the names of the commands that packages of others give."""
    return tuple(name for name in doors.names("commands") if name not in COMMANDS)


def _meant(name: str) -> str:
    """Return advice for a name that is not a command."""
    from difflib import get_close_matches

    if near := get_close_matches(name, COMMANDS, 1, 0.6):
        return f": did you mean {near[0]}?"
    if any(character.isspace() for character in name):
        return f': to ask a question, write likewise search "{name}"'
    return ": likewise --help --all names all commands"


def _print_all(ctx: click.Context, parameter: click.Parameter, is_wanted: bool) -> None:
    """Print the help with every command, and end."""
    if is_wanted and not ctx.resilient_parsing:
        ctx.meta[_LISTS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--all", is_flag=True, is_eager=True, expose_value=False, callback=_print_all,
              help="Show this with all commands.")  # fmt: skip
@click.version_option(None, "-V", "--version", package_name="likewise")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Search your own documents by meaning.

    \b
    likewise open ~/papers                        search this folder in the browser
    likewise index ~/papers                       make an index in this folder (.likewise), or update it
    likewise search how do vaccines work          search the index of this folder, or of the nearest one above
    likewise index papers.index ~/papers          make an index in a place of its own
    likewise search papers.index "how do vaccines work"
    """
    ctx.meta[FINISHES] = ctx.invoked_subcommand in _FINISHING


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Exit codes: 0 done, 1 done with failures, 2 bad input, 3 could not run, 130 interrupted, 141 the reader left early.
    """
    warnings.showwarning = _show_warning
    # NumPy's threads sleep at once while they have no work, and not after 25 ms of CPU each.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # Python looks for garbage at its end, which takes 90 ms and frees what the system frees anyway.
    atexit.register(gc.freeze)
    prepare_streams()
    try:
        _interrupt_on_sigterm()
        check_system()
        code = cli.main(args=arguments, prog_name="likewise", standalone_mode=False, color=colour())
        sys.stdout.flush()
        _exit(code if isinstance(code, int) else 0)
    except LikewiseError as error:
        _fail(in_shell(error), error.exit_code, getattr(error, "caret", ""))
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        say(message.getvalue().rstrip("\n"), err=True)  # without a password, if it repeats what was typed
        _exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        say("likewise: interrupted; what was committed is kept", err=True)
        _exit(130)
    except BrokenPipeError:
        _exit_without_reader()
    except Exception as error:
        if os.environ.get("LIKEWISE_DEBUG") and not isinstance(error, OSError):
            raise
        _fail(_describe(error), 3)


def _describe(error: Exception) -> str:
    """Return the line to print for an error that is not one of likewise's own."""
    if (lack := _lack_of_memory(error)) is not None:
        return (
            f"there is too little memory{lack}: close other programs, or allow this program more (ulimit -v, or "
            "the limit of its container)"
        )
    if isinstance(error, OSError):  # most often a full disk behind the output
        return f"{error.filename or 'standard output or a file'}: {error.strerror or error}; solve this and run again"
    return f"internal error: {type(error).__name__}: {error} (LIKEWISE_DEBUG=1 shows where)"


def _lack_of_memory(error: BaseException) -> str | None:
    """Return the message about too little memory from an error or its causes; None if memory is not the reason."""
    cause: BaseException | None = error
    while cause is not None:
        lines = str(cause).splitlines()
        if isinstance(cause, MemoryError):
            return f" ({lines[0][:200]})" if lines else ""
        for line in lines:  # OpenVINO writes a line for each of its own functions
            if any(sign in line.lower() for sign in _LACKS_MEMORY):
                return f" ({line[:200]})"
        cause = cause.__cause__ or cause.__context__
    return None


def _interrupt_on_sigterm() -> None:
    """Let SIGTERM, with which services and containers end a process, do the same as Ctrl-C.

    Nothing changes if the parent process ignores SIGTERM, or if the calling program has its own handler.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    # Only the first one counts: `timeout` sends two, and the second would interrupt the cleaning up.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _exit_without_reader() -> NoReturn:
    """Exit after the reader of the output has left."""
    _exit(_READER_LEFT)


def _fail(message: str, code: int, caret: str = "") -> NoReturn:
    say(f"likewise: error: {message}{caret}", err=True)
    _exit(code)


def _exit(code: int) -> NoReturn:
    try:
        sys.stdout.flush()
    except OSError:
        discard(sys.stdout)  # or Python would try again at its end, and exit with 120
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
