"""Limits of time, memory and size for reading a file. A file over one of them fails, and its reason names the limit.

`--max-file-mb` is the only limit that users choose. Readers that run in this process take time in proportion to the
size of their file: tables, JSON and plain text. All others run in the worker process (worker.py).
"""

MAX_FILE_SECONDS = 60.0
"""Maximum seconds for one file in the worker process, from the request to the end of the answer."""

MAX_PICTURE_SECONDS = 10.0
"""Maximum seconds for the picture of a page in the worker process."""

START_SECONDS = 60.0
"""Maximum extra seconds for the first file of a format, because its library may be imported from a cold disk."""

MAX_ATTACHMENT_SECONDS = 30.0
"""Maximum seconds for all files that are attached to a message, so that the message itself is read in time."""

EXTRA_MEMORY_BYTES = 2 * 2**30
"""Maximum bytes of address space for reading, in addition to the address space of the worker process at its start."""

MAX_EXPANSION = 8
"""Maximum characters of extracted text per byte of --max-file-mb. A zip file holds more than its size."""

MAX_PAGES = 100_000
"""Maximum pages of a PDF, as many as a shelf of books has."""

MAX_COLUMNS = 16_384
"""Maximum columns of a table, as many as a sheet of Excel has."""

MAX_REPEATS = 1000
"""Maximum number of times that a repeated cell or row of a sheet is written. Sheets end with a million empty rows."""

MAX_REPEATED_CHARACTERS = 2**14
"""Maximum characters that are written for a repeated cell or row of a sheet."""

MAX_ARCHIVE_MEMBERS = 20_000
"""Maximum members of a zip file."""

MAX_UNPACKED_BYTES = 2**30
"""Maximum declared size of all members of a zip file, unpacked. `zipfile` reads no member beyond its declared size."""

MAX_PACKING_RATIO = 200
"""Maximum ratio of unpacked to packed size of a large member of a zip file. XML of real documents has a ratio of at
most 50."""
