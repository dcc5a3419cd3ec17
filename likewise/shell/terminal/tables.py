"""Tables of plain text, the same on a terminal and in a pipe."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Sequence

from likewise.shell.terminal.output import printable, say


def print_table(rows: Iterable[Sequence[object]], right: Collection[int] = ()) -> None:
    """Print rows in columns that are as wide as their widest cell, two spaces apart. No cell is wrapped or cut.

    Args:
        rows: cells of each row; a header is the first row.
        right: positions of the columns that are aligned to the right.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[Text(printable(str(cell))) for cell in row] for row in rows]
    table = Table.grid(padding=(0, 2))
    for column in range(len(cells[0]) if cells else 0):
        table.add_column(justify="right" if column in right else "left", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    width = sum(cell.cell_len + 2 for row in cells for cell in row)  # an upper bound, so that nothing is cut
    text = io.StringIO()
    Console(file=text, width=max(width, 1), color_system=None, legacy_windows=False).print(table)
    for line in text.getvalue().splitlines():
        say(line.rstrip())
