"""The prompt of `likewise search` without a question: questions one after the other, with a warm encoder."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from indexer.encoders.machine.user_folders import state_folder
from indexer.errors import LikewiseError, count_of, in_shell
from likewise.shell.arguments.options import resolve_where
from likewise.shell.terminal.output import say, shown, warn

if TYPE_CHECKING:
    from search.hits.hits import Hit, Hits
    from search.query.query import Mode, Query
    from search.searcher import Searcher

_HELP = """\
a question        rank the documents by it; "a phrase", +word and, at its end, -word are conditions
3                 print the document of hit 3
:next             the next page of hits
:mode             the next of dense, words and hybrid, and the question again
:filter year>2020 filter this question and later ones; :filter alone allows all
:similar 3        rank the documents that are near to hit 3
:quit             also Ctrl-D"""


def can_prompt() -> bool:
    """Return whether a person types and reads: standard input and output are a terminal that moves its cursor.

    Some Pythons are built without `readline`. They have no prompt.
    """
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return is_terminal and find_spec("readline") is not None


class Prompt:
    """Asks for questions and answers them until Ctrl-D."""

    def __init__(
        self,
        searcher: Searcher,
        ask: Callable[..., Query],
        show: Callable[[Hits, int], None],
        *,
        k: int,
        mode: Mode,
        where: str | None,
    ) -> None:
        """Prepare a prompt; `run` starts it.

        Args:
            ask: function that makes a query from the keywords text, k, mode and where.
            show: function that prints hits, given the rank of the first hit.
            k, mode, where: as in `likewise search`, until the user changes them.
        """
        self._searcher, self._ask, self._show = searcher, ask, show
        self._k, self._mode, self._where = k, mode, where
        self._question: dict[str, Any] | None = None  # keywords of `ask` for the last question
        self._hits: tuple[Hit, ...] = ()

    def run(self) -> None:
        """Read questions and commands until Ctrl-D or :quit."""
        threading.Thread(target=self._warm, name="likewise encoder", daemon=True).start()
        documents = count_of(len(self._searcher), "document")
        say(f"{shown(self._searcher.address)}: {documents}; :help names the commands, Ctrl-D ends")
        keep = _open_history()
        while True:
            try:
                filtered = f", {self._where}" if self._where else ""
                keep(line := input(f"{self._mode}{filtered}? "))
                if line.strip() == ":quit":
                    return
                self._obey(line.strip())
            except LikewiseError as error:
                say(f"{in_shell(error)}{getattr(error, 'caret', '')}")
            except KeyboardInterrupt:  # Ctrl-C leaves the line, as in shells
                say("")
            except EOFError:
                say("")
                return

    def _warm(self) -> None:
        """Load the encoder while the first question is typed."""
        try:
            self._searcher.encoder.encode(["warm"], role="query", truncate=True)
        except LikewiseError:
            return  # the first question that needs it reports the same

    def _obey(self, line: str) -> None:
        """Carry out the command of a line."""
        name, _, rest = line.partition(" ")
        commands: Mapping[str, Callable[[str], None]] = {
            ":next": self._next_page,
            ":mode": self._change_mode,
            ":filter": self._filter,
            ":similar": self._similar,
            ":help": lambda _: say(_HELP),
        }
        if line.isdecimal():
            self._print(int(line))
        elif name in commands:
            commands[name](rest.strip())
        elif line.startswith(":"):
            say(f"{line}: not a command; :help names them")
        elif line:
            self._begin(text=line)

    def _begin(self, **question: Any) -> None:
        self._question = question
        self._again()

    def _again(self) -> None:
        """Answer the last question, from its first page."""
        self._hits = ()
        if self._question is not None:
            self._show_from(1)

    def _show_from(self, first: int) -> None:
        """Answer the last question, and print a page of its hits that begins with this rank."""
        from dataclasses import replace

        settings = {"k": first - 1 + self._k, "mode": self._mode, "where": resolve_where(self._where)}
        hits = self._searcher.answer(self._ask(**{**settings, **(self._question or {})}))
        if 1 < first > len(hits):
            say("these were all hits")
            return
        self._hits = hits.hits
        self._show(replace(hits, hits=hits.hits[first - 1 :]), first)

    def _next_page(self, _: str) -> None:
        if self._hits:
            self._show_from(len(self._hits) + 1)
        else:
            say("there is no next page: ask a question")

    def _change_mode(self, _: str) -> None:
        from search.query.query import Mode

        modes: tuple[Mode, ...] = get_args(Mode)
        self._mode = modes[(modes.index(self._mode) + 1) % len(modes)]
        self._again()

    def _similar(self, rank: str) -> None:
        if not rank.isdecimal():
            say("give the number of a hit, as in :similar 3")
        elif (hit := self._hit(int(rank))) is not None:
            self._begin(text="", mode="dense", rerank=None, like=[hit.uri])

    def _filter(self, where: str) -> None:
        """Filter from now on. A filter that cannot be read, or that the index cannot answer, is not kept."""
        earlier, self._where = self._where, where or None
        try:
            resolve_where(self._where)
            self._again()
        except LikewiseError:
            self._where = earlier
            raise

    def _hit(self, rank: int) -> Hit | None:
        if 0 < rank <= len(self._hits):
            return self._hits[rank - 1]
        say(f"there is no hit {rank}" if self._hits else "no hits: ask a question")
        return None

    def _print(self, rank: int) -> None:
        """Print the document of a hit."""
        if (hit := self._hit(rank)) is not None:
            say(self._searcher.get(hit.uri).text, tabs=True)


def history_file() -> Path:
    """Return the file of earlier questions, which only this user may read."""
    return state_folder() / "history"


def _open_history() -> Callable[[str], None]:
    """Give the lines of earlier sessions to readline. Return a function that keeps the line that was just typed."""
    import readline

    file = history_file()
    # Some libraries cannot append. With them, the last session to write replaces the lines of other sessions.
    append = getattr(readline, "append_history_file", lambda _, path: readline.write_history_file(path))
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        file.chmod(0o600)
        if file.stat().st_size:  # libedit refuses an empty file
            readline.read_history_file(file)
    except OSError as error:
        warn(f"{file}: {error.strerror}; the questions of this session are not kept")
        return lambda _: None

    def keep(line: str) -> None:
        try:
            if line:  # readline has no empty lines
                append(1, file)
        except OSError as error:
            warn(f"{file}: {error.strerror}; this question is not kept")

    return keep
