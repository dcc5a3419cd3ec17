"""Where a function sends a fact that its caller should know: a `Note` is any callable that takes one sentence.

A call that has a result returns its notes in that result; what is here is for calls that have none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

Note = Callable[[str], None]
"""Takes one fact as a sentence for people, such as "... cannot be used; torch is used meanwhile"."""


def log_note(message: str) -> None:
    """Log a fact as a warning of the logger `likewise`."""
    logging.getLogger("likewise").warning("%s", message)
