"""Reading texts for commands that work without an index: the lines or records of a file, or the files of a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from indexer.errors import BadInput
from indexer.records import Document
from indexer.sources import ReadOptions, open_sources, read
from indexer.stores.addresses.open import holds_store
from likewise.evaluation.records import read_text

_RECORDS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")


def read_documents(path: Path, text_field: str | None = None) -> list[Document]:
    """Return the records of a .jsonl, .json, .csv or .tsv file, or the lines of any other file that are not blank.

    Of a folder, return the documents of its files. The uri of a line is its number, counted from 1, and that of a file
    is its path in the folder.

    Args:
        text_field: member of a record that is its text; by default the usual names are tried.

    Raises:
        BadInput: a record cannot be read, or there is none.
    """
    if not path.is_dir() and path.suffix.lower() not in _RECORDS:
        lines = enumerate(read_text(path).split("\n"), 1)
        documents = [Document(str(number), line.strip()) for number, line in lines if line.strip()]
    else:
        options = ReadOptions(text_field=text_field)
        documents, skipped = [], ""
        for source in open_sources([str(path)], options, holds_store):
            for entry in read(source, options, lambda file: None):
                if entry.state == "failed":
                    raise BadInput(f"{entry.file}: {entry.reason.text()}")
                if entry.document is not None:
                    inside = entry.uri.removeprefix(f"{source.root}/")
                    documents.append(replace(entry.document, uri=inside))
                elif entry.state == "skipped":
                    skipped = f" ({entry.reason.text()})"
        if not documents:
            raise BadInput(f"{path}: holds no record with text{skipped}: give each a field text, or name its field")
    if not documents:
        raise BadInput(f"{path}: holds no text: write one sentence per line")
    return documents
