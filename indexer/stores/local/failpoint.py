"""Where the kill tests end a writer: at a named step, the n-th time it is reached. Does nothing otherwise."""

from __future__ import annotations

import os
import signal

_NAME, _, _TIMES = os.environ.get("LIKEWISE_KILL_AT", "").partition(":")
_left = int(_TIMES or 1)

STEPS = (
    "commit.begun",
    "commit.written",
    "commit.done",
    "seal.written",
    "seal.synced",
    "seal.renamed",
    "seal.recorded",
    "seal.swept",
    "words.written",
    "words.renamed",
    "words.recorded",
    "words.swept",
    "compact.vacuumed",
)


def failpoint(step: str) -> None:
    """Die here, by SIGKILL, when LIKEWISE_KILL_AT=step:n says so."""
    global _left  # noqa: PLW0603 - one count a process
    if step == _NAME:
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
