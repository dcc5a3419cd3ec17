"""Looking up documents by uri, in the same way for `Index` and for `Searcher`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeGuard

from indexer.errors import BadInput, IndexDamaged, Message, UnknownUri
from indexer.filters.mapping import Filter, filter_tree
from indexer.filters.tree import Where
from indexer.records import Document, broken_at
from indexer.stores.fields.flatten import scalars
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store

_SAMPLE_PASSAGES = 1000
"""Number of passages whose documents are used to count the commonest fields."""


def is_uri(value: object) -> TypeGuard[str]:
    """Return whether a document can have this uri. A store accepts only valid Unicode."""
    return isinstance(value, str) and broken_at(value) is None


def unknown_uri(address: str, uri: object) -> UnknownUri:
    """Return the error for a uri that no document of an index has."""
    return UnknownUri(
        Message(
            f"{address}: has no document {uri!r}",
            "; likewise list shows what there is, and show also takes the path of a table or a mailbox",
        )
    )


def read_removal(uris: Iterable[Any] | str | None, where: Filter | None) -> list[Any] | Where:
    """Return the arguments of `Index.remove`: the given uris as a list, or the filter.

    Raises:
        BadInput: neither is given, or both, or the filter is empty.
        FilterError: the filter does not parse.
    """
    if (uris is None) == (where is None):
        raise BadInput("give either uris or a filter (where) to remove")
    if uris is None:
        if (condition := filter_tree(where)) is None:
            raise BadInput('an empty filter would remove every document: if that is meant, give "exists uri"')
        return condition
    if not isinstance(uris, Iterable):
        raise BadInput(f"the uris are not a list but {type(uris).__name__}")
    return [uris] if isinstance(uris, str) else list(uris)


def documents_of(store: Store, uris: Iterable[object]) -> list[Document]:
    """Return documents in the order of the uris, all from one commit; unknown uris are left out."""
    with store.snapshot() as snapshot:
        return [document for uri in uris if is_uri(uri) and (document := snapshot.get(uri)) is not None]


def document_of(store: Store, uri: str) -> Document:
    """Return a document. Raises UnknownUri if no document has this uri."""
    documents = documents_of(store, [uri])
    if not documents:
        raise unknown_uri(store.address, uri)
    return documents[0]


def has_document(store: Store, wanted: object) -> bool:
    """Return whether a document has this uri, or is equal to this document."""
    uri = wanted.uri if isinstance(wanted, Document) else wanted
    if not is_uri(uri):
        return False
    with store.snapshot() as snapshot:
        return snapshot.get(uri) == wanted if isinstance(wanted, Document) else bool(snapshot.hashes([uri]))


def commonest_fields(snapshot: Snapshot) -> list[str]:
    """Return metadata fields, the commonest in a sample of the documents first; empty if passages are damaged."""
    try:
        drawn = snapshot.passages_by_id(snapshot.sample(_SAMPLE_PASSAGES).passages.tolist())
    except IndexDamaged:  # `likewise check` says what is wrong
        return []
    metadata = {passage.uri: passage.metadata for passage in drawn}
    counts = Counter(name for uri, each in metadata.items() for name in {row[0] for row in scalars(uri, each)})
    return sorted(counts, key=lambda name: (-counts[name], name))
