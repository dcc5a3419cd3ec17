"""likewise, the package to import: the public names of `indexer` and `search`, which hold the code.

Names are imported when they are first used. `likewise.client`, `likewise.service` and `likewise.adapters` need extras.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer import *
    from search import *
else:
    from indexer import __all__ as _of_indexer
    from search import __all__ as _of_search

    __all__, __getattr__, __dir__ = lazy_names(__name__, {"indexer": _of_indexer, "search": _of_search})
