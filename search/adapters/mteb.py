"""The public import path of the names of `likewise.adapters.mteb`."""

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.adapters.mteb import LikewiseSearch as LikewiseSearch
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__, {"likewise.adapters.mteb": ["LikewiseSearch"]}, "adapters")
