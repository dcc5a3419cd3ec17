"""Reading the texts of one file, for commands that work without an index: one text per line, or records."""

from __future__ import annotations

from pathlib import Path

from indexer.errors import BadInput
from indexer.records import Document
from indexer.sources import ReadOptions, open_sources, read
from indexer.stores.addresses.open import holds_store
from likewise.evaluation.records import read_text

_RECORDS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")


def read_documents(path: Path, text_field: str | None = None) -> list[Document]:
    """Return the records of a .jsonl, .json, .csv or .tsv file, or the lines of any other file that are not blank.

    The uri of a line is its number, counted from 1.

    Args:
        text_field: member of a record that is its text; by default the usual names are tried.

    Raises:
        BadInput: a record cannot be read, or there is none.
    """
    if path.suffix.lower() not in _RECORDS:
        lines = enumerate(read_text(path).split("\n"), 1)
        documents = [Document(str(number), line.strip()) for number, line in lines if line.strip()]
    else:
        options = ReadOptions(text_field=text_field)
        documents, skipped = [], ""
        for source in open_sources([str(path)], options, holds_store):
            for entry in read(source, options, lambda file: None):
                if entry.state == "failed":
                    raise BadInput(f"{path}: {entry.reason.text()}")
                if entry.document is not None:
                    documents.append(entry.document)
                elif entry.state == "skipped":
                    skipped = f" ({entry.reason.text()})"
        if not documents:
            raise BadInput(f"{path}: holds no record with text{skipped}: give each a field text, or name its field")
    if not documents:
        raise BadInput(f"{path}: holds no text: write one sentence per line")
    return documents
