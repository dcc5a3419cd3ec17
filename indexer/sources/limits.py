"""Limits of time, memory and size for reading a file. A file over one of them fails, and its reason names the limit.

`--max-file-mb` is the only limit that users choose. Readers that run in this process take time in proportion to the
size of their file: tables, JSON and plain text. All others run in the worker process (files/worker.py).
"""

MAX_FILE_SECONDS = 60.0
"""Maximum seconds for one file in the worker process, from the request to the end of the answer."""

START_SECONDS = 60.0
"""Maximum extra seconds for the first file of a format, because its library may be imported from a cold disk."""

EXTRA_MEMORY_BYTES = 2 * 2**30
"""Maximum bytes of address space for reading, in addition to the address space of the worker process at its start."""

MAX_EXPANSION = 8
"""Maximum characters of extracted text per byte of --max-file-mb. A zip file holds more than its size."""

MAX_COLUMNS = 16_384
"""Maximum columns of a table, as many as a sheet of Excel has."""
