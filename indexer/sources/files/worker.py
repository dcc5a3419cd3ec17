"""The worker process, `python -m indexer.sources.files.worker`, in which readers run (see extractor.py).

Requests and answers are JSON, and cross the connection whose file descriptor is the argument. They are not pickled,
because a malicious file may control this process, and the caller must not run its code. Everything that a file does to
a library (endless loops, memory, crashes, prints) stays in this process. The process ends when its caller closes the
connection or ends.
"""

# ruff: noqa: PTH117, PTH123
from __future__ import annotations

import json
import logging
import os
import signal
import sys
import warnings
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from typing import Any

from indexer import doors
from indexer.errors import to_install
from indexer.ledger import Code, notes_stored
from indexer.sources.content import Assembly, Content, Skip, Unreadable
from indexer.sources.files.extractor import EXTRACTOR
from indexer.sources.limits import EXTRA_MEMORY_BYTES


def main(descriptor: int) -> None:
    """Serve requests until the connection is closed."""
    # A service's end reaches all of its processes. The parent then ends the worker, and knows that no file is at fault.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    logging.disable()
    warnings.simplefilter("ignore")
    _limit_memory()
    with Connection(descriptor) as connection, suppress(EOFError):
        while True:
            request = json.loads(connection.recv_bytes())
            if hasattr(signal, "alarm"):
                signal.alarm(int(request["seconds"]) + 5)  # ends a long reading if the parent is gone
            data = connection.recv_bytes() if request["has_data"] else None
            connection.send_bytes(json.dumps(_answer(request, data)).encode())
            if hasattr(signal, "alarm"):
                signal.alarm(0)


def _answer(request: dict[str, Any], data: bytes | None) -> dict[str, Any]:
    try:
        if part := request.get("part"):
            answer: dict[str, Any] = doors.require("parts", part, "this request").answer(request, data)
            return answer
        return _content(request, data)
    except Skip as skip:
        return {"skipped": skip.reason.stored()}
    except Unreadable as error:
        return {"failed": error.reason.stored()}
    except MemoryError:
        return {"failed": Code.TOO_MUCH_MEMORY(EXTRA_MEMORY_BYTES // 2**30).stored()}


def _content(request: dict[str, Any], data: bytes | None) -> dict[str, Any]:
    limit, text = request["max_characters"], request["text"]
    source = next(each for each in (data, text, request["path"]) if each is not None)
    Assembly.max_characters, EXTRACTOR.depth = limit, request["depth"]
    content = call_reader(request["reader"], source)
    if text is not None:
        content = replace(content, text="")  # the caller has it
    if len(content.text) > limit:
        raise Unreadable(Code.TEXT_OVER_LIMIT(f"{limit:,}"))
    return {"content": asdict(content) | {"note": content.note.stored(), "unread": notes_stored(content.unread)}}


def call_reader(name: str, source: str | bytes) -> Content:
    """Return what a reader makes of a decoded text, of the path of a file, or of a message.

    Raises:
        Unreadable: parsers raise anything on damaged files. One file must not end the run.
        Skip: it holds nothing to index, or its reader is not installed.
        MemoryError: there is not enough memory.
    """
    try:
        if (reader := doors.find("readers", name)) is None:
            raise Skip(Code.NO_READER(name, to_install()))
        content: Content = reader(source)
        if not isinstance(content, Content):
            raise Unreadable(Code.READER_FAILED(name, f"its reader returns {type(content).__name__}, not Content"))
    except (Skip, Unreadable, MemoryError):
        raise
    except Exception as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        if isinstance(source, str) and os.path.isabs(source):  # an attachment is in a temporary file
            problem = problem.replace(source, "the file")
        if isinstance(error, LookupError | TypeError | AttributeError):  # a name in the code of a reader says nothing
            problem = "something in it is missing, or not as its format asks"
        raise Unreadable(Code.READER_FAILED(name, problem[:200])) from error
    return content


def _limit_memory() -> None:
    """Limit the address space, where the system can do that."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as statm:
            size = int(statm.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # not Linux: the time limit and the archive check remain
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = size + EXTRA_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


if __name__ == "__main__":
    main(int(sys.argv[1]))
