"""Named steps at which a test may kill a writer, when it reaches a step for the n-th time. Without a test nothing
happens."""

from __future__ import annotations

import os
import signal

_STEP, _, _COUNT = os.environ.get("LIKEWISE_KILL_AT", "").partition(":")
_remaining = int(_COUNT or 1)

MIGRATED = "migration.written"
"""The step after an older format was migrated and before the migration is committed."""

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
"""The steps at which one index replaces another (slots.py)."""


def failpoint(step: str) -> None:
    """End the process by SIGKILL if LIKEWISE_KILL_AT is `step:n` and this is the n-th time."""
    global _remaining  # noqa: PLW0603 - one count per process
    if step == _STEP:
        _remaining -= 1
        if _remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)
