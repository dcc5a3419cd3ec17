"""How long slow tests attack an index in PostgreSQL: `LIKEWISE_TEST_ATTACKS=10` makes it ten times as long."""

from __future__ import annotations

import os

TIMES = float(os.environ.get("LIKEWISE_TEST_ATTACKS", "1"))

KILLS = round(5 * TIMES)
"""How often each process is killed."""

SECONDS = 30 * TIMES
"""How long several writers and readers work at once."""

TIMEOUT_S = round(300 * TIMES)
"""After how many seconds such a test is ended."""
