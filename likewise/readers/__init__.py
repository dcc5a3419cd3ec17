"""The door of the part that reads office files, PDF, mail and more. Each format has a file with its reader.

`indexer.doors.find("parts", "readers")` returns this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.readers.extracted_titles import title_of_extracted as title_of_extracted
    from likewise.readers.formats.pdf_picture import answer as answer
    from likewise.readers.mailbox import Mailboxes as Mailboxes
    from likewise.readers.original import Original as Original
    from likewise.readers.original import original_of as original_of
    from likewise.readers.programs import ExtractorProgram as ExtractorProgram
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "likewise.readers.extracted_titles": ["title_of_extracted"],
            "likewise.readers.mailbox": ["Mailboxes"],
            "likewise.readers.original": ["Original", "original_of"],
            "likewise.readers.programs": ["ExtractorProgram"],
            "likewise.readers.formats.pdf_picture": ["answer"],
        },
    )
