"""The command line: program.py is the command `likewise`, and every subcommand has a file of its own."""

from likewise.shell.program import cli, main

__all__ = ["cli", "main"]
