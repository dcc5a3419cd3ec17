"""The checks of `likewise check` for an index in a database, and what the repair needs to know."""

from __future__ import annotations

from collections.abc import Iterator

from indexer.settings import Meaning
from indexer.stores.reading.checks import Findings, setting_notes, wrong_documents
from likewise.postgres.address import Address
from likewise.postgres.connections import SOUND_PGVECTOR
from likewise.postgres.leftovers import note_of, unfinished
from likewise.postgres.schema import pgvector_version
from likewise.postgres.views import View


def find(view: View, meaning: Meaning | None, address: Address) -> Findings:
    """Verify every row against its checksum or hash, the counts, the filters' rows and the graph.

    Args:
        meaning: what the hashes of embedded content were made with; None leaves those out.
    """
    return Findings(
        *wrong_documents(view, meaning),
        last={"counts": list(_counts(view)), "graph": list(_graph(view))},
        notes=tuple(_notes(view, address)),
    )


def _counts(view: View) -> Iterator[str]:
    row = view.state.row
    ((documents, passages, tokens),) = view.rows(
        "SELECT count(*), coalesce(sum(passages), 0)::bigint, coalesce(sum(tokens), 0)::bigint FROM {tables}.document"
    )
    for what, counted, said in (
        ("documents", documents, row.documents),
        ("passages", passages, row.passages),
        ("tokens", tokens, row.tokens),
    ):
        if counted != said:
            yield f"likewise.index: holds {counted} {what} and says {said}"


def _graph(view: View) -> Iterator[str]:
    if view.state.row.ef_search is None:
        return
    valid = view.rows(
        "SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'passage_graph' AND n.nspname = %s",
        view.state.row.tables,
    )
    if valid != [(True,)]:
        yield "the graph of the passages is missing or was not completed; likewise compact builds it again"


def _notes(view: View, address: Address) -> Iterator[str]:
    version = pgvector_version(view.connection)
    if version < SOUND_PGVECTOR:
        dotted, sound = (".".join(map(str, parts)) for parts in (version, SOUND_PGVECTOR))
        yield (
            f"pgvector {dotted} has known defects that can damage a graph; install {sound} or newer, run "
            "ALTER EXTENSION vector UPDATE, then likewise compact"
        )
    rows = dict(view.rows("SELECT name, value FROM {tables}.setting"))
    yield from setting_notes(rows, unfinished_run=view.state.row.run != view.state.row.finished_run)
    yield from (note_of(left, address) for left in unfinished(view.connection))
