"""`Client`: the public path of what `likewise.client` holds."""

from indexer.doors import installed

with installed("client"):
    from likewise.client import Client as Client
