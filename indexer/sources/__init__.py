"""Reading of SOURCE arguments: folders, files, globs and stdin become documents.

`open_sources` resolves the arguments, and `read` yields an Entry for each file or record. Nothing here knows models,
databases or the shell.

To add a format, write readers/FORMAT.py with one function: either `read(text: str) -> Content`, which keeps the decoded
text, or `read(path: str) -> Content`, which extracts the text. It runs in the worker process
within its bounds. It raises Unreadable (the file failed) or Skip (it holds nothing) with a reason. Then name its
extensions in FORMATS (formats.py). Nothing else has to change.
"""

from indexer.sources.entry import Entry, FieldOfFiles, ReadOptions
from indexer.sources.programs import ExtractorProgram
from indexer.sources.reading import read
from indexer.sources.share import Share
from indexer.sources.source import Source, open_sources

__all__ = ["Entry", "ExtractorProgram", "FieldOfFiles", "ReadOptions", "Share", "Source", "open_sources", "read"]
