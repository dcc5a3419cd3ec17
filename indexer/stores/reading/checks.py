"""What the checks of all engines share: documents with wrong fields, notes on settings, and the report of a repair."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from indexer.errors import BadInput, count_of
from indexer.settings import Meaning
from indexer.stores.fields.flatten import scalars, with_dates
from indexer.stores.port import CheckReport
from indexer.stores.reading.document_rows import WRONG_TYPES, damage_of, unsound_documents
from indexer.stores.reading.view import Rows
from indexer.stores.setting_rows import unreadable
from indexer.stores.vectors import checksum


@dataclass(frozen=True, slots=True)
class Findings:
    """The problems that a check has found, grouped by the repair that each needs.

    Attributes:
        damaged: uris of documents to be embedded again.
        wrong_fields: uris of documents whose filter fields are to be written again.
        first, last: messages, by the engine's name of the repair. `first` is reported before the documents, `last`
            after them.
        notes: facts that are worth knowing but are not problems.
    """

    damaged: list[str]
    wrong_fields: list[str]
    first: Mapping[str, list[str]] = field(default_factory=dict)
    last: Mapping[str, list[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def report(self) -> CheckReport:
        problems = (
            *(message for messages in self.first.values() for message in messages),
            *(str(damage_of(uri)) for uri in self.damaged),
            *(f"{uri}: filters do not see its metadata as it is stored" for uri in self.wrong_fields),
            *(message for messages in self.last.values() for message in messages),
        )
        return CheckReport(problems, self.notes)

    def repaired(self, engine_repairs: Mapping[str, Sized], check: Callable[[], Findings]) -> CheckReport:
        """Return the problems that a repair of these findings has left, with notes that also name what was repaired.

        Args:
            engine_repairs: the engine's own repairs, by the note about each. A repair without findings is not run.
            check: checks again.
        """
        damaged = count_of(len(self.damaged), "damaged document")
        fields = count_of(len(self.wrong_fields), "document")
        repairs = {
            f"{damaged} will be embedded again when the source is indexed again": self.damaged,
            f"wrote the filters' rows of {fields} again": self.wrong_fields,
            **engine_repairs,
        }
        done = tuple(note for note, problems in repairs.items() if problems)
        if not done:
            return self.report
        remaining = check().report
        return CheckReport(remaining.problems, (*done, *remaining.notes))


def wrong_documents(view: Rows, meaning: Meaning | None) -> tuple[list[str], list[str]]:
    """Return the uris of documents to be embedded again, and of documents whose filter fields differ from their
    metadata.

    Args:
        meaning: what the hashes of embedded content were made with; None leaves those out.
    """
    damaged = dict.fromkeys([*_documents_with_damaged_passages(view), *unsound_documents(view, meaning)])
    return list(damaged), list(_documents_with_wrong_fields(view))


def _documents_with_damaged_passages(view: Rows) -> Iterator[str]:
    """Yield the uris of documents with a passage that does not match its checksum, and of documents that lack
    passages."""
    rows = view.stream(
        "SELECT d.id, d.uri, d.passages, {t}.text, {t}.raw, p.start, p.stop, p.checksum, p.vector"
        " FROM {tables}.document d{texts} LEFT JOIN {tables}.passage p ON p.document_id = d.id ORDER BY d.id"
    )
    for _, passages in groupby(rows, itemgetter(0)):
        uri, count, held, sound = "", 0, 0, True
        for _, uri, count, text, raw, start, stop, recorded, vector in passages:  # noqa: B007
            if start is None:  # a document without passages
                continue
            held += 1
            try:
                whole = text if raw is None else raw.decode()
                sound = sound and checksum(whole[start:stop], view.blob_of(vector)) == recorded
            except WRONG_TYPES:
                sound = False
        if not sound or count != held:
            yield uri


def _documents_with_wrong_fields(view: Rows) -> Iterator[str]:
    stored = view.stream(
        "SELECT v.document_id, f.name, f.type, v.{number}, v.{text} FROM {tables}.field_value v"
        " JOIN {tables}.field f ON f.id = v.field_id ORDER BY v.document_id"
    )
    groups = groupby(stored, itemgetter(0))
    id_, rows = next(groups, (None, ()))
    for document_id, uri, metadata, modified in view.stream(
        "SELECT id, uri, metadata, modified FROM {tables}.document ORDER BY id"
    ):
        while id_ is not None and id_ < document_id:  # rows of no document do no harm
            id_, rows = next(groups, (None, ()))
        held = set()
        if id_ == document_id:
            held = {(name, kind, text if number is None else number) for _, name, kind, number, text in rows}
            id_, rows = next(groups, (None, ()))
        # Metadata that is not a JSON object does not match the row's hash, and is reported for that.
        with suppress(BadInput, *WRONG_TYPES):
            if set(with_dates(scalars(uri, json.loads(metadata)), modified)) != held:
                yield uri


def setting_notes(rows: Mapping[str, str], *, unfinished_run: bool) -> list[str]:
    """Return notes on settings that cannot be read, and on a run that did not end."""
    notes = [
        f"the setting {name!r} cannot be read and is left out; the next run measures it again, or tune learns it"
        for name in unreadable(rows)
    ]
    if unfinished_run:
        notes.append("the last indexing run did not finish; run it again to continue")
    return notes
