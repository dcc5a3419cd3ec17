"""Encoders that compute with torch: BERT written out, any other model through its library, and cross-encoders."""

from __future__ import annotations

import os
import sys


def _compute_in_the_calling_thread() -> None:
    """Let torch use one thread in a forked child. It would wait forever for the threads that its parent had."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_num_threads"):  # it lacks it while another thread imports it
        torch.set_num_threads(1)


os.register_at_fork(after_in_child=_compute_in_the_calling_thread)
