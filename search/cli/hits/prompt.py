"""The prompt of `likewise search` without a question: questions one after the other, with a warm encoder."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from platformdirs import user_state_path

from indexer.errors import LikewiseError, count_of, in_shell
from search.cli.arguments.options import resolve_where
from search.cli.hits.hit_formats import open_hit
from search.cli.terminal.output import say, shown, warn

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from search.hits import Hit, Hits
    from search.query import Mode, Query
    from search.searcher import Searcher

_HELP = """\
a question        rank the documents by it; "a phrase", +word and -word in it are conditions
3                 open hit 3 in VISUAL or EDITOR; Enter alone opens the first one of the page
:next             the next page of hits; also Page Down
:mode             the next of dense, words and hybrid, and the question again; also F2
:filter           edits the filter, and an empty one allows all; also F3
:similar 3        rank the documents that are near to hit 3
:quit             also Ctrl-D"""

_KEYS = {"pagedown": ":next", "f2": ":mode", "f3": ":filter"}
"""The commands that keys give in the middle of a question."""


def can_prompt() -> bool:
    """Return whether a person types and reads: standard input and output are a terminal that moves its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


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
        self._repeat: Callable[[int], Hits] | None = None  # answers the last question again, with k hits
        self._hits: tuple[Hit, ...] = ()
        self._first = 1  # rank of the first hit of the page
        self._typed = ""  # what a key has interrupted

    def run(self) -> None:
        """Read questions and commands until Ctrl-D or :quit."""
        from prompt_toolkit import PromptSession

        threading.Thread(target=self._warm, name="likewise encoder", daemon=True).start()
        session: PromptSession[str] = PromptSession(
            history=_history(), key_bindings=_keys(self._interrupted), enable_history_search=True
        )
        documents = count_of(len(self._searcher), "document")
        say(f"{shown(self._searcher.address)}: {documents}; :help names the commands, Ctrl-D ends")
        while True:
            typed, self._typed = self._typed, ""
            try:
                line = session.prompt("? ", default=typed, bottom_toolbar=self._toolbar).strip()
            except KeyboardInterrupt:  # Ctrl-C leaves the line, as in shells
                continue
            except EOFError:
                return
            if line == ":quit":
                return
            try:
                self._obey(line, session)
            except LikewiseError as error:
                say(f"{in_shell(error)}{getattr(error, 'caret', '')}")
            except KeyboardInterrupt:
                say("interrupted")

    def _warm(self) -> None:
        """Load the encoder while the first question is typed."""
        try:
            self._searcher.encoder.encode(["warm"], role="query", truncate=True)
        except LikewiseError:
            return  # the first question that needs it reports the same

    def _interrupted(self, typed: str) -> None:
        self._typed = typed

    def _toolbar(self) -> str:
        where = f" · {self._where}" if self._where else ""
        return f" F2 {self._mode} · F3 filter{where} · Page Down next · Enter opens a hit · :help "

    def _obey(self, line: str, session: PromptSession[str]) -> None:
        """Carry out the command of a line."""
        name, _, rest = line.partition(" ")
        commands: Mapping[str, Callable[[str], None]] = {
            ":next": self._next_page,
            ":mode": self._change_mode,
            ":filter": lambda _: self._edit_filter(session),
            ":similar": self._similar,
            ":help": lambda _: say(_HELP),
        }
        if not line:
            if self._hits:
                self._open(self._first)
        elif line.isdecimal():
            self._open(int(line))
        elif name in commands:
            commands[name](rest.strip())
        elif line.startswith(":"):
            say(f"{line}: not a command; :help names them")
        else:
            self._begin(lambda k: self._searcher.answer(self._query(line, k)))

    def _query(self, text: str, k: int) -> Query:
        return self._ask(text=text, k=k, mode=self._mode, where=resolve_where(self._where))

    def _like(self, uri: str, k: int) -> Query:
        where = resolve_where(self._where)
        return self._ask(text="", k=k, mode="dense", where=where, rerank=None, like=[uri])

    def _begin(self, answer: Callable[[int], Hits]) -> None:
        self._repeat = answer
        self._again()

    def _again(self) -> None:
        """Answer the last question, from its first page."""
        self._first, self._hits = 1, ()
        if self._repeat is not None:
            hits = self._repeat(self._k)
            self._hits = hits.hits
            self._show(hits, 1)

    def _next_page(self, _: str) -> None:
        from dataclasses import replace

        if self._repeat is None or not self._hits:
            say("no hits to go on from: ask a question")
            return
        first = len(self._hits) + 1
        hits = self._repeat(len(self._hits) + self._k)
        if len(hits) < first:
            say("these were all")
            return
        self._first, self._hits = first, hits.hits
        self._show(replace(hits, hits=hits.hits[first - 1 :]), first)

    def _change_mode(self, _: str) -> None:
        from search.query import Mode

        modes: tuple[Mode, ...] = get_args(Mode)
        self._mode = modes[(modes.index(self._mode) + 1) % len(modes)]
        self._again()

    def _similar(self, rank: str) -> None:
        if not rank.isdecimal():
            say("give the number of a hit, as in :similar 3")
        elif (hit := self._hit(int(rank))) is not None:
            self._begin(lambda k: self._searcher.answer(self._like(hit.uri, k)))

    def _edit_filter(self, session: PromptSession[str]) -> None:
        """Ask for a filter from now on. One that cannot be read, or that the index cannot answer, is not kept."""
        try:
            text = session.prompt("filter: ", default=self._where or "", bottom_toolbar='year >= 2020 and lang = "en"')
        except (KeyboardInterrupt, EOFError):
            return
        resolve_where(text.strip() or None)
        earlier, self._where = self._where, text.strip() or None
        try:
            self._again()
        except LikewiseError:
            self._where = earlier
            raise

    def _hit(self, rank: int) -> Hit | None:
        if 0 < rank <= len(self._hits):
            return self._hits[rank - 1]
        say(f"there is no hit {rank}" if self._hits else "no hits to open: ask a question")
        return None

    def _open(self, rank: int) -> None:
        """Open the file of a hit. A document that is not in a file is printed."""
        hit = self._hit(rank)
        if hit is None:
            return
        if hit.path and Path(hit.path).is_file():
            open_hit(hit)
        else:
            say(self._searcher.get(hit.uri).text, tabs=True)


def _keys(interrupted: Callable[[str], None]) -> KeyBindings:
    """Return the keys of the prompt.

    Args:
        interrupted: is called with the typed text when a key ends the line.
    """
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    def end_with(line: str) -> Callable[[KeyPressEvent], None]:
        def press(event: KeyPressEvent) -> None:
            interrupted(event.current_buffer.text)
            event.app.exit(result=line)

        return press

    for key, line in _KEYS.items():
        keys.add(key)(end_with(line))
    return keys


def history_file() -> Path:
    """Return the file of earlier questions, which only this user may read."""
    return user_state_path("likewise", appauthor=False) / "history"


def _history() -> History:
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    file = history_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600))
        file.chmod(0o600)
    except OSError as error:
        warn(f"{file}: {error.strerror}; the questions of this session are not kept")
        return InMemoryHistory()
    return FileHistory(str(file))
