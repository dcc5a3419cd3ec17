"""Limits of a client's request, and of the number of requests at the same time."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import anyio

from indexer.filters.tree import TextMatch, Where, conditions
from search.lanes import Lane, ended

MAX_QUERY_CHARACTERS = 10_000
"""Maximum characters of a question. The model reads about 1,000 of them; the words of the rest still count."""
MAX_EXAMPLES = 100
"""Maximum documents that a question names as like, and as unlike."""
MAX_DIMENSIONS = 16_384
MAX_EXPLAINED = 100
"""Maximum hits that are explained. Explaining 1,000 hits took 15 seconds."""
MAX_QUESTIONS = 100
"""Maximum questions in one request. They are embedded together, and the first answer waits for the last."""
MAX_HITS_TOGETHER = 10_000
"""Maximum hits that the questions of one request may ask for together: about 17 MB."""
MAX_FACETS = 20
"""Maximum fields that one request counts: as many as a person looks at."""
MAX_BODY_BYTES = 1 << 20
MAX_DOCUMENTS_BYTES = 16 << 20
"""Maximum bytes of a body with documents or with texts to embed."""
PARSED_AT_ONCE = 4096
"""Maximum bytes of a body, or characters of a filter, that are parsed while others wait: 14 MB take a second."""
MAX_TEXT_CHARACTERS = 4_000_000
"""Maximum characters of a document, about 700 pages of a book: one document is one commit, and other writers wait for
its embedding."""
MAX_METADATA_FIELDS = 1000
"""Maximum metadata fields of a document. Each listed field needs a query of its own."""
MAX_REMOVED = 100_000
"""Maximum uris of documents that one request removes, all in one commit."""
MAX_TEXTS = 2048
"""Maximum texts to embed in one request."""
MAX_TEXTS_CHARACTERS = 1_000_000
"""Maximum characters, or tokens, of all texts of a request together. Their tokens take about 130 bytes of memory per
character."""
MAX_BUFFERED_BYTES = 256 << 20
"""Maximum bytes of the bodies of all requests in memory at the same time."""
MAX_ANSWERED_BYTES = 256 << 20
"""Maximum bytes of the large answers that clients have not read yet, all together."""
PIECE_BYTES = 1 << 18
"""Number of bytes of an answer that are given to the connection together. A smaller answer is always sent."""
MAX_HEADERS = 100
MAX_REQUESTS = 512
"""Maximum requests that are read or wait at the same time. A further request is answered with 503."""
BODY_DEADLINE_S = 10.0
"""Maximum seconds until a body has arrived."""


def reads_values(where: Where | None) -> bool:
    """Return whether a filter reads every value of a field: no index helps `contains`, `endswith` and `like`."""
    every = () if where is None else conditions(where)
    return any(isinstance(each, TextMatch) and each.op != "startswith" for each in every)


class ServiceLane(Lane):
    """A lane of the service. A request whose client has left keeps its place until its thread has ended."""

    async def _after_caller_left(self, running: Future[Any]) -> None:
        with anyio.CancelScope(shield=True):
            await ended(running)  # a thread that runs cannot be stopped
