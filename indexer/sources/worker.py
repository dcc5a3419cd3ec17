"""The worker process, `python -m indexer.sources.worker`, which reads formats that need a library (see extractor.py).

Requests and answers are JSON with a 4-byte length before them, on stdin and stdout. Everything that a file does to a
library (endless loops, memory, crashes, prints) stays in this process. It ends when its stdin or its parent ends.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import importlib
import json
import logging
import os
import signal
import struct
import sys
import warnings
from dataclasses import asdict
from typing import IO, Any, BinaryIO

from indexer.ledger import Code
from indexer.sources.content import Content, Skip, Unreadable

EXTRA_MEMORY_BYTES = 2 * 2**30
"""Bytes of address space that reading may take, in addition to those of the process at its start."""

LENGTH_HEADER = struct.Struct(">I")


def main() -> None:
    """Serve requests until stdin ends."""
    # A service's end reaches all of its processes. The parent then ends this one, and knows that no file is at fault.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the prints of a library must not come between the answers
    logging.disable()
    warnings.simplefilter("ignore")
    _limit_memory()
    while request := receive(sys.stdin.buffer):
        if hasattr(signal, "alarm"):
            signal.alarm(int(request["seconds"]) + 5)  # ends a long reading if the parent is gone
        send(answers, _answer(request))
        if hasattr(signal, "alarm"):
            signal.alarm(0)


def receive(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the next message; None at the end of the stream."""
    header = stream.read(LENGTH_HEADER.size)
    if len(header) < LENGTH_HEADER.size:
        return None
    message: dict[str, Any] = json.loads(stream.read(LENGTH_HEADER.unpack(header)[0]))
    return message


def send(stream: IO[bytes], message: dict[str, Any]) -> None:
    encoded = json.dumps(message).encode()
    stream.write(LENGTH_HEADER.pack(len(encoded)) + encoded)
    stream.flush()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    limit = request["max_characters"]
    try:
        reader = importlib.import_module(f"indexer.sources.readers.{request['module']}")
        content: Content = reader.read(request["path"])
        if len(content.text) > limit:
            raise Unreadable(Code.TOO_MUCH_TEXT(f"{len(content.text):,}", f"{limit:,}"))
        return {"content": asdict(content) | {"note": content.note.stored()}}
    except Skip as skip:
        return {"skipped": skip.reason.stored()}
    except Unreadable as error:
        return {"failed": error.reason.stored()}
    except MemoryError:
        return {"failed": Code.TOO_MUCH_MEMORY(EXTRA_MEMORY_BYTES // 2**30).stored()}
    except Exception as error:  # noqa: BLE001 - parsers raise anything on damaged files; it is reported as the reason
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        return {"failed": Code.READER_FAILED(request["module"], problem[:200]).stored()}


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
    main()
