"""Limits of time, memory and size for reading a file. A file over one of them fails, and its reason names the limit.

`--max-file-mb` is the only limit that users choose. Readers that run in this process take time in proportion to the
size of their file: tables, JSON and plain text. All others run in worker processes (files/worker.py).
"""

MAX_FILE_SECONDS = 60.0
"""Maximum seconds for one file in a worker process, from the request to the end of the answer. Libraries are imported
for the first file of a format, which takes a few seconds from a cold disk."""

MAX_MB_SECONDS = 10.0
"""Seconds per megabyte that reading a table or JSON may take in this process, if they are more than MAX_FILE_SECONDS.
Usual tables take less than one."""

PATIENCE_SECONDS = 5.0
"""Seconds after which a file is set aside, and the files after it are read by another worker process. Starting a worker
takes up to two on a busy machine, and is no reason for another commit."""

EXTRA_MEMORY_BYTES = 2 * 2**30
"""Maximum bytes of address space for reading, in addition to the address space of the worker process at its start."""

MAX_EXPANSION = 8
"""Maximum characters of extracted text per byte of --max-file-mb. A zip file holds more than its size."""

MAX_COLUMNS = 16_384
"""Maximum columns of a table, as many as a sheet of Excel has."""
