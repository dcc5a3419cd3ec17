"""The worker process, `python -m indexer.sources.worker`, which reads formats that need a library (see extractor.py).

Requests and answers are JSON, and cross the connection whose file descriptor is the argument. They are not pickled,
because the caller must not run what a file made of this process. Everything that a file does to a library (endless
loops, memory, crashes, prints) stays in this process. It ends when its caller closes the connection or ends.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import json
import logging
import signal
import sys
import warnings
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from indexer.ledger import Code
from indexer.sources.content import Skip, Unreadable
from indexer.sources.formats import call_reader

EXTRA_MEMORY_BYTES = 2 * 2**30
"""Bytes of address space that reading may take, in addition to those of the process at its start."""


def main(descriptor: int) -> None:
    """Serve requests until the connection is closed."""
    # A service's end reaches all of its processes. The parent then ends this one, and knows that no file is at fault.
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
            connection.send_bytes(json.dumps(_answer(request)).encode())
            if hasattr(signal, "alarm"):
                signal.alarm(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    limit = request["max_characters"]
    try:
        content = call_reader(request["module"], request["path"])
        if len(content.text) > limit:
            raise Unreadable(Code.TOO_MUCH_TEXT(f"{len(content.text):,}", f"{limit:,}"))
        return {"content": asdict(content) | {"note": content.note.stored()}}
    except Skip as skip:
        return {"skipped": skip.reason.stored()}
    except Unreadable as error:
        return {"failed": error.reason.stored()}
    except MemoryError:
        return {"failed": Code.TOO_MUCH_MEMORY(EXTRA_MEMORY_BYTES // 2**30).stored()}


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
