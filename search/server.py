"""The public import path of `likewise.service.create_app`."""

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.service import create_app as create_app
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__, {"likewise.service": ["create_app"]}, "service")
