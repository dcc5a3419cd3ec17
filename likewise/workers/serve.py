"""A worker process, `python -m likewise.workers.serve`: it embeds the documents that its run sends it.

Requests and answers cross the connection whose file descriptor is the argument; wire.py has their form. The process
ends when its run closes the connection or ends.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from likewise.workers.wire import Answering


def main(descriptor: int) -> None:
    """Answer requests until the connection is closed."""
    # Ctrl-C and the end of a service reach all processes. The run then ends its workers.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    answer = Answering().answer
    with Connection(descriptor) as connection, suppress(EOFError, BrokenPipeError):
        while True:
            connection.send_bytes(answer(connection.recv_bytes()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
