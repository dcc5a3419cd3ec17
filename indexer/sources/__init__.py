"""SOURCE arguments in, documents out. Knows nothing of models, databases or the shell.

`open_sources` resolves folders, files, globs and stdin; `read` yields an Entry for each file or record.

To teach it a format, write FORMAT.py beside this with one function, either `read(text: str) -> Content`
(the text is kept as decoded; runs in this process) or `read(path: str) -> Content` (the text is extracted; in
the bounded worker). It raises Unreadable (the file failed) or Skip (it holds nothing), with a reason.
Then name its extensions in FORMATS (formats.py). Nothing else has to change.
"""

from indexer.sources.entry import Entry, ReadOptions
from indexer.sources.reading import read
from indexer.sources.source import Source, open_sources

__all__ = ["Entry", "ReadOptions", "Source", "open_sources", "read"]
