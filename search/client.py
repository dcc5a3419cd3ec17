"""The public import path of `likewise.client.Client`."""

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.client import Client as Client
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__, {"likewise.client": ["Client"]}, "client")
