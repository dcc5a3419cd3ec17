"""Renews the tables of one section of docs/measured.md, or lists the sections.

`python -m benchmarks [NAME]`, or `make bench TABLE=NAME`.
"""

from __future__ import annotations

import datetime
import sys

from benchmarks.machine import processor
from benchmarks.measured import PAGE, renew, tables_of


def main() -> int:
    """Return 2 if the page has no table of this name."""
    if len(sys.argv) == 1:
        for table in tables_of(PAGE.read_text(encoding="utf-8").splitlines()):
            print(f"{table.section:15} {table.date}  {table.command.strip('`')}  ({table.cpu})")
        return 0
    try:
        renew(PAGE, sys.argv[1], processor(), datetime.date.today().isoformat())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
