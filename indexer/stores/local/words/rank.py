"""A filter as a restriction of the word indexes of a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexer.filters.tree import Where, render
from indexer.stores.local import queries
from indexer.stores.local.views import View
from indexer.stores.word_ranking import Words

if TYPE_CHECKING:
    from indexer.stores.tantivy_index import Restriction


def restriction(view: View, words: Words, where: Where | None) -> Restriction | None:
    """Return a filter as a restriction to its documents, kept with the words; None where it leaves all documents."""
    from indexer.stores.tantivy_index import restrict

    if where is None:
        return None
    key = render(where)
    if (cached := words.restrictions.get(key, words)) is not words:  # None is a filter that leaves all documents
        return cached  # type: ignore[return-value]
    flags = queries.document_flags(view, where)
    matched = int(np.count_nonzero(flags))
    if matched == view.state.documents:
        return words.keep(key, None)
    if 2 * matched < len(flags):
        return words.keep(key, restrict("document", np.flatnonzero(flags)))
    # The list of excluded documents is shorter.
    return words.keep(key, restrict("document", np.flatnonzero(~flags), excluded=True))
