"""A process of ours beside this one, which answers bytes with bytes.

It is a subprocess, not a process of multiprocessing, so that scripts without a `__main__` guard work. The connection to
it comes from multiprocessing, and only its bytes are used: nothing is pickled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Pipe
from pathlib import Path
from types import MappingProxyType


class ChildEnded(Exception):
    """A child ended before it answered.

    Attributes:
        code: its exit code; negative for a signal.
        is_late: whether it was ended because it took too long.
    """

    def __init__(self, code: int, is_late: bool) -> None:
        super().__init__(f"{'signal' if code < 0 else 'exit'} {abs(code)}")
        self.code, self.is_late = code, is_late


class Child:
    """A process `python -m MODULE DESCRIPTOR`, which serves the connection of this file descriptor until its end.

    Attributes:
        process: the process.
    """

    def __init__(self, module: str, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start the process, with these variables of its environment."""
        root = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), root)))
        self._owner = os.getpid()
        self._connection, of_child = Pipe()
        with of_child:
            descriptor = of_child.fileno()
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(descriptor)],  # -P: not from the working folder
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # a library may print
                stderr=subprocess.DEVNULL,
                env={**os.environ, **environment, "PYTHONPATH": path},
                pass_fds=(descriptor,),
                start_new_session=True,  # Ctrl-C reaches only the parent, which then closes the connection
            )

    @property
    def is_running(self) -> bool:
        """Whether it can be asked. The child of a process that has forked belongs to the parent alone."""
        return self._owner == os.getpid() and self.process.poll() is None

    def ask(self, messages: Sequence[bytes], seconds: float) -> bytes:
        """Send messages and return the answer to them.

        Raises:
            ChildEnded: it has ended, or needs more time and was ended.
        """
        deadline = time.monotonic() + seconds
        killer = threading.Timer(seconds, self.process.kill)  # also in the middle of a message or the answer
        killer.start()
        try:
            for message in messages:
                self._connection.send_bytes(message)
            return self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise ChildEnded(self.process.wait(), time.monotonic() >= deadline) from error
        finally:
            killer.cancel()

    def close(self) -> None:
        """End the process. Another thread that waits for its answer gets ChildEnded."""
        if self._owner == os.getpid():
            self.process.kill()
            self.process.wait()
        else:
            self._connection.close()
