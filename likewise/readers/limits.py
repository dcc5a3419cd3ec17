"""Limits of single formats. A file over one of them fails, and its reason names the limit (see also limits.py)."""

MAX_PICTURE_SECONDS = 10.0
"""Maximum seconds for the picture of a page in the worker process."""

MAX_ATTACHMENT_SECONDS = 30.0
"""Maximum seconds for all files that are attached to a message, so that the message itself is read in time."""

MAX_PAGES = 100_000
"""Maximum pages of a PDF, as many as a shelf of books has."""

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
