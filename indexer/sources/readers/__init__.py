"""The door of the part that reads office files, PDF, mail and more. Each format has a file with its reader.

`indexer.doors.find("parts", "readers")` returns this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.sources.extracted_titles import title_of_extracted as title_of_extracted
    from indexer.sources.mailbox import Mailboxes as Mailboxes
    from indexer.sources.original import Original as Original
    from indexer.sources.original import original_of as original_of
    from indexer.sources.programs import ExtractorProgram as ExtractorProgram
    from indexer.sources.readers.pdf_picture import answer as answer
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "indexer.sources.extracted_titles": ["title_of_extracted"],
            "indexer.sources.mailbox": ["Mailboxes"],
            "indexer.sources.original": ["Original", "original_of"],
            "indexer.sources.programs": ["ExtractorProgram"],
            "indexer.sources.readers.pdf_picture": ["answer"],
        },
    )
