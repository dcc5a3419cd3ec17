"""Named steps at which a test may kill a writer, the n-th time one is reached. Without a test nothing happens."""

from __future__ import annotations

import os
import signal

_STEP, _, _COUNT = os.environ.get("LIKEWISE_KILL_AT", "").partition(":")
_remaining = int(_COUNT or 1)

MIGRATED = "migration.written"
"""The step at which an older format has been brought up to date, and is not committed yet."""

STEPS = (
    "commit.begun",
    "commit.written",
    "commit.done",
    "commit.acknowledged",
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

EXCHANGE_STEPS = ("exchange.out", "exchange.swapped", "exchange.in")
"""The steps at which an index takes the place of another one (slots.py)."""


def failpoint(step: str) -> None:
    """End the process by SIGKILL if LIKEWISE_KILL_AT is `step:n` and this is the n-th time."""
    global _remaining  # noqa: PLW0603 - one count per process
    if step == _STEP:
        _remaining -= 1
        if _remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)
