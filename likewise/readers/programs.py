"""Programs of the user that extract text from files which no reader knows, or in which a reader finds no text.

A program runs without a shell, in a process group and an empty folder of its own, with limits of time, memory and
output. What it writes to its standard output, in UTF-8, is the text.
"""

# ruff: noqa: PTH110, PTH117, PTH119
from __future__ import annotations

import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from indexer.errors import BadInput
from indexer.ledger import Code
from indexer.records import KnownFile
from indexer.sources.content import Assembly, Content, Skip, Unreadable
from indexer.sources.formats import FORMATS, TEXT, format_of_extension, reader_of
from likewise.readers.page_numbers import page_ranges, texts_of_pages

FILE = "{file}"
"""The part of a command that the absolute path of the file replaces."""

_NOT_OPENED = (Code.EMPTY, Code.TOO_LARGE)
"""Reasons for which neither a reader nor a program gets the file."""

_PAGES_LEFT = (Code.PAGES_WITHOUT_TEXT, Code.PICTURE_PAGES, Code.GARBLED_PAGES, Code.PAGES_DAMAGED)

_CHUNK_BYTES = 2**16
_ERROR_BYTES = 4096
"""Bytes at the end of standard error that are kept, for its last line."""

# Limits are set in the child by a process that then becomes the program: code between fork and exec of a process with
# threads may wait forever.
_LAUNCHER = """
import os, resource, sys
def limit(kind, most):
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))
limit(resource.RLIMIT_CORE, 0)
limit(resource.RLIMIT_CPU, int(sys.argv[2]))
limit(resource.RLIMIT_AS, int(sys.argv[1]))
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclass(frozen=True, slots=True)
class ExtractorProgram:
    """A program for one kind of file.

    Attributes:
        kind: ".png" for files with this extension, which no reader knows; "pdf" for files of this format in which its
            reader finds no text, or pages without text.
        command: the absolute path of the program and its arguments, one of which has "{file}".
        seconds, memory_mb, output_mb: limits for one file; a megabyte has 2**20 bytes.

    Raises:
        BadInput: it cannot be run like this. The message says what to change.
    """

    kind: str
    command: tuple[str, ...]
    seconds: float = 120
    memory_mb: float = 2048
    output_mb: float = 64

    def __post_init__(self) -> None:
        formats = {format_.name for format_ in FORMATS.values() if format_.kind == "extracted"}
        if known_format := format_of_extension(self.kind):
            name = known_format.name
            advice = f'name its format "{name}" for files without text' if name in formats else "leave it out"
            raise BadInput(f'extractor of "{self.kind}": likewise reads these files itself: {advice}')
        if self.kind not in formats and (self.kind != self.kind.lower() or not _is_extension(self.kind)):
            known = ", ".join(sorted(formats))
            raise BadInput(
                f'extractor of "{self.kind}": give an extension in lower case such as ".png", or one of {known}'
            )
        if problem := _problem(self.command):
            raise BadInput(f'extractor of "{self.kind}": {problem}')
        if not all(0 < limit <= 10**6 for limit in (self.seconds, self.memory_mb, self.output_mb)):
            raise BadInput(f'extractor of "{self.kind}": its limits must be above 0, up to 1,000,000')

    def __str__(self) -> str:
        limits = f"{self.seconds:g} s, {self.memory_mb:g} MB of memory, {self.output_mb:g} MB of output"
        return f"{self.kind}: {shlex.join(self.command)} (up to {limits})"

    @property
    def name(self) -> str:
        """The program's own name, without its folder."""
        return os.path.basename(self.command[0])

    @property
    def reader(self) -> str:
        """The name and a hash, which the ledger has for files that were read by it. The hash is that of the command and
        of the reader whose text the program completes."""
        identity = repr((self.command, reader_of(self.kind)))
        return f"{self.name}/{blake2b(identity.encode(), digest_size=4).hexdigest()}"

    def read(self, path: str) -> Content:
        """Return the text that the program writes for a file, with its name in the metadata.

        Form feeds, which programs write between pages, begin sections.

        Raises:
            Unreadable: it failed, was over a limit, or did not write UTF-8.
            Skip: it wrote nothing.
        """
        return self._content(self._text(path).rstrip().split("\f"), {})

    def complete(self, path: str, content: Content) -> Content:
        """Return what a reader has found in a file, with the program's text of the pages that have none.

        If the program does not divide its output into the pages of the file, all of its text is used, provided that it
        is longer than the reader's.

        Raises:
            Unreadable: as `read`.
            Skip: it finds no more than the reader.
        """
        written, count, unread = self._text(path).split("\f"), content.metadata["pages"], content.unread_pages
        others = tuple(note for note in content.unread if note.code not in _PAGES_LEFT)
        if count <= len(written) <= count + 1:  # tesseract ends the last page with a form feed too
            pages = texts_of_pages(content)
            filled = [number for number in unread if len(written[number - 1].strip()) > len(pages.get(number, ""))]
            pages |= {number: written[number - 1] for number in filled}
            texts = [pages.get(number, "") for number in range(1, count + 1)]
            left = [number for number in unread if number not in filled]
            if left:
                others = (*others, Code.PAGES_WITHOUT_TEXT(len(left), count, page_ranges(left)))
            read = Code.PAGES_BY_PROGRAM(len(filled), count, self.name, page_ranges(filled))
        else:
            filled = [*unread] if len("".join(written).strip()) > len(content.text) else []
            texts, read = written, Code.TEXT_BY_PROGRAM(self.name, len(unread), count, page_ranges(unread))
        if not filled:
            raise Skip(Code.PROGRAM_WITHOUT_TEXT(self.name))
        completed = self._content(texts, content.metadata)
        return replace(completed, title=content.title, note=read, unread=others)

    def may_add_to(self, recorded: KnownFile) -> bool:
        """Return whether a file that another reader has read may lack text: it was read as plain text, it was skipped,
        or some of its pages have no text."""
        is_skipped = any(state == "skipped" and reason.code not in _NOT_OPENED for _, state, reason in recorded.entries)
        codes = {note.code for notes in recorded.notes.values() for note in notes}
        return is_skipped or reader_of(TEXT.name) in recorded.readers or not codes.isdisjoint(_PAGES_LEFT)

    def _content(self, pages: Sequence[str], metadata: Mapping[str, Any]) -> Content:
        assembly = Assembly()
        for number, page in enumerate(pages, 1):
            if len(pages) > 1:
                assembly.section(page=number)
            assembly.add(page)
        content = assembly.content("", {**metadata, "extracted_by": self.name})
        if not content.text:
            raise Skip(Code.PROGRAM_WITHOUT_TEXT(self.name))
        return content

    def _text(self, path: str) -> str:
        try:
            return self._run(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unreadable(Code.PROGRAM_NOT_UTF_8(self.name, f"{error.start + 1:,}")) from error

    def _run(self, path: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="likewise-") as folder:
            command = [self.command[0], *(part.replace(FILE, path) for part in self.command[1:])]
            cpu_seconds = int(self.seconds * (os.cpu_count() or 1)) + 1
            limits = [str(int(self.memory_mb * 2**20)), str(cpu_seconds)]
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _LAUNCHER, *limits, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": folder, "TMPDIR": folder},
                cwd=folder,
                start_new_session=True,
            )
            with process:
                try:
                    return self._output(process)
                finally:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)  # also what it has left running

    def _output(self, process: subprocess.Popen[bytes]) -> bytes:
        deadline = time.monotonic() + self.seconds
        output, errors = bytearray(), b""
        too_slow = Unreadable(Code.PROGRAM_TOO_SLOW(self.name, f"{self.seconds:g}"))
        with selectors.DefaultSelector() as selector:
            for stream in filter(None, (process.stdout, process.stderr)):
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise too_slow
                for key, _ in ready:
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is process.stdout:
                        output += chunk
                    else:
                        errors = (errors + chunk)[-_ERROR_BYTES:]
                if len(output) > self.output_mb * 2**20:
                    raise Unreadable(Code.PROGRAM_TOO_MUCH_OUTPUT(self.name, f"{self.output_mb:g}"))
        try:
            code = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise too_slow from error
        if code:
            lines = errors.decode("utf-8", "replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "it writes no error")
            raise Unreadable(Code.PROGRAM_FAILED(self.name, "signal" if code < 0 else "exit", abs(code), last))
        return bytes(output)


def _is_extension(kind: str) -> bool:
    return kind.startswith(".") and len(kind) > 1 and not {".", "/"}.intersection(kind[1:])


def _problem(command: tuple[str, ...]) -> str:
    """Return why a command cannot be run, and what to do; empty if it can."""
    if not command or not all(isinstance(part, str) and part and "\0" not in part for part in command):
        return (
            f'give a list of texts, the program and its arguments, such as ["/usr/bin/tesseract", "{FILE}", "stdout"]'
        )
    program = command[0]
    real = os.path.realpath(program)
    problems = (
        (not os.path.isabs(program), f"{program} is a relative path: give the absolute one"),
        (not os.path.exists(program), f"{program} does not exist: install it, or correct the path"),
        (real != program, f"{program} is reached by a link: give the file itself, {real}"),
        (shutil.which(program) is None, f"{program} cannot be executed: give the path of a program"),
        (
            not any(FILE in part for part in command[1:]),
            f'no argument has "{FILE}", which the path of a file replaces: add it',
        ),
    )
    return next((problem for is_one, problem in problems if is_one), "")
