"""Reading of SOURCE arguments: folders, files, globs and stdin become documents.

`open_sources` resolves the arguments, and `read` yields an Entry for each file or record. Nothing here knows models,
databases or the shell.

To add a format, write likewise/readers/formats/FORMAT.py with one function: either `read(text: str) -> Content`, which
keeps the decoded text, or `read(path: str) -> Content`, which extracts the text. It runs in the worker process
within its bounds. It raises Unreadable (the file failed) or Skip (it holds nothing) with a reason. Then name its
extensions in FORMATS (formats.py) and the function in TABLE (doors.py). Nothing else has to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import indexer.doors
from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    ExtractorProgram: Any
    from indexer.sources.entry import Entry as Entry
    from indexer.sources.entry import ReadOptions as ReadOptions
    from indexer.sources.files.reading import read as read
    from indexer.sources.folders.source import Source as Source
    from indexer.sources.folders.source import open_sources as open_sources
else:
    __all__, _found, __dir__ = lazy_names(
        __name__,
        {
            "indexer.sources.entry": ["Entry", "ReadOptions"],
            "indexer.sources.files.reading": ["read"],
            "indexer.sources.folders.source": ["Source", "open_sources"],
        },
    )

    def __getattr__(name: str) -> Any:
        if name == "ExtractorProgram":  # a public name here, and the part has it
            return indexer.doors.require("parts", "readers", "a program that extracts text").ExtractorProgram
        return _found(name)
