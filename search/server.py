"""`create_app`: the public path of what `likewise.service` holds."""

from indexer.doors import installed

with installed("service"):
    from likewise.service import create_app as create_app
