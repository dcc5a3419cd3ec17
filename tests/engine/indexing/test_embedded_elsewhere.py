"""Documents that were embedded without the index: by an `Embedder`, whose values another process may have made."""

from __future__ import annotations

import pickle
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import snapshot_of
from postgres_server import new_address
from word_encoder import WordEncoder

from indexer import BadInput, Document, Embedder, Index, RecipeMismatch, Section
from search import Searcher

TEXT = " ".join(f"word{number}" for number in range(70))
DOCUMENTS = [
    Document("a", "pears and plums", "Fruit", {"year": 2024}),
    Document("long", TEXT, "Words", sections=(Section(0, "First"), Section(TEXT.index("word40"), "Second", 2))),
    Document("b", "ships at sea"),
]


@pytest.fixture(params=["folder", "database"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "x.index") if request.param == "folder" else new_address()


def stored(index: Index) -> list[Any]:
    """Everything that a document has in an index, but for the order in which it was written."""
    hashes = snapshot_of(index).hashes()
    items = sorted(index._core.store.export(), key=lambda item: item.document.uri)
    return [
        (item, hashes[item.document.uri], None if item.vectors is None else item.vectors.tolist()) for item in items
    ]


def test_documents_are_stored_as_if_they_had_been_embedded_here(
    address: str, tmp_path: Path, encoder: WordEncoder
) -> None:
    with Index.create(tmp_path / "serial.index", encoder) as serial, Index.create(address, encoder) as index:
        serial.add(DOCUMENTS)
        assert index.passage_settings is not None
        embedded = Embedder(encoder.recipe, index.passage_settings).embed(DOCUMENTS)
        seen = len(encoder.seen)
        assert index.changed(DOCUMENTS) == DOCUMENTS
        changes = index.add(DOCUMENTS, embedded=embedded)
        assert changes.added == ("a", "long", "b")
        assert repr(stored(index)) == repr(stored(serial))
        assert [row.prefix for row in embedded[1].spans] == ["First", "First", "Second", "Second"]
        assert not set(encoder.seen[seen:]) & {"Fruit pears and plums", "ships at sea"}  # but for the cosines
        assert index.changed(DOCUMENTS) == []
        seen = len(encoder.seen)
        assert index.add(DOCUMENTS).unchanged == ("a", "long", "b")
        assert len(encoder.seen) == seen
    assert Searcher(address).search("pears plums", k=1)[0].uri == "a"


def test_only_new_content_is_said_to_be_changed(tmp_path: Path, encoder: WordEncoder) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(DOCUMENTS)
        other_year = replace(DOCUMENTS[0], metadata={"year": 2025})
        other_text = replace(DOCUMENTS[2], text="ships in port")
        new = Document("c", "new")
        assert index.changed([other_year, DOCUMENTS[1], other_text, new]) == [other_text, new]
        assert index.add([other_text, new], embedded=index.embedder.embed([other_text, new])).replaced == ("b",)
        assert index.add(other_year).updated == ("a",)


def test_the_next_run_over_the_same_source_embeds_nothing(
    tmp_path: Path, encoder: WordEncoder, likewise: Callable[..., Any], lines: Callable[..., str]
) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text(lines({"id": "a", "text": "pears and plums"}, {"id": "b", "text": "ships at sea"}))
    folder = tmp_path / "x.index"
    with Index.create(tmp_path / "read.index", encoder) as read:
        assert likewise("index", tmp_path / "read.index", records, "--json").code == 0
        documents = list(read)
    with Index.create(folder, encoder) as index:
        index.add(documents, embedded=index.embedder.embed(documents))
    seen = len(encoder.seen)
    counts = likewise("index", folder, records, "--json").json
    assert (counts["indexed"], counts["unchanged"]) == (0, 2)
    assert not set(encoder.seen[seen:]) & {"pears and plums", "ships at sea"}


def test_embedder_and_values_travel_between_processes(tmp_path: Path, encoder: WordEncoder) -> None:
    """Ray, Spark and multiprocessing send values as pickle does."""
    with Index.create(tmp_path / "x.index", encoder) as index:
        there = pickle.loads(pickle.dumps(index.embedder))  # noqa: S301
        embedded = pickle.loads(pickle.dumps(there.embed(DOCUMENTS)))  # noqa: S301
        assert repr(embedded) == repr(index.embedder.embed(DOCUMENTS))
        assert index.add(DOCUMENTS, embedded=embedded).added == ("a", "long", "b")


def test_what_does_not_fit_is_refused_and_nothing_is_stored(tmp_path: Path, make_encoder: Callable[..., Any]) -> None:
    encoder, other = make_encoder(), make_encoder(name="others", weights="2")
    with Index.create(tmp_path / "x.index", encoder) as index:
        assert index.passage_settings is not None
        (good,) = index.embedder.embed(DOCUMENTS[0])
        (wrong,) = Embedder(other.recipe, index.passage_settings).embed(DOCUMENTS[0])
        add = index.add
        for embedded, error, message in (
            ([wrong], RecipeMismatch, "a: its vectors were made by another recipe"),
            ([good, good], BadInput, "one item per document, 1 in all"),
            ([replace(good, vectors=good.vectors[:, :3])], BadInput, r"vectors have shape \(1, 3\)"),
            ([replace(good, vectors=good.vectors * np.nan)], BadInput, "a value that is not finite"),
            ([replace(good, spans=(replace(good.spans[0], end=99),))], BadInput, "within its 15 characters"),
            ([replace(good, spans=((0, 4),))], BadInput, "its passages are not Spans"),  # type: ignore[arg-type]
            ([replace(good, spans=(), failure="it ended its worker")], BadInput, "a: embedding it ended each worker"),
            ([(good.spans, good.vectors)], BadInput, "is not what Embedder.embed returns"),
        ):
            with pytest.raises(error, match=message):
                add([DOCUMENTS[0]], embedded=embedded)  # type: ignore[list-item]
        with pytest.raises(BadInput, match="comes twice"):
            add([DOCUMENTS[0], DOCUMENTS[0]], embedded=[good, good])
        with pytest.raises(BadInput, match="not both"):
            add([DOCUMENTS[0]], vectors=good.vectors, embedded=[good])
        for given in ({"embedded": [good]}, {"vectors": good.vectors}):
            with pytest.raises(BadInput, match="leave out workers"):
                add([DOCUMENTS[0]], workers=object(), **given)  # type: ignore[arg-type]
        assert len(index) == 0
        as_json = replace(good, vectors=good.vectors.tolist())  # type: ignore[arg-type]
        assert add([DOCUMENTS[0]], embedded=[as_json]).added == ("a",)


def test_a_text_that_the_model_cannot_read_has_no_passages(tmp_path: Path, encoder: WordEncoder) -> None:
    encoded = Document("a", b64encode(bytes(range(256)) * 8).decode())
    with Index.create(tmp_path / "x.index", encoder) as index:
        (embedded,) = index.embedder.embed(encoded)
        assert embedded.spans == ()
        with pytest.raises(BadInput, match="a: has no text that the model can read"):
            index.add(encoded, embedded=[embedded])


def test_an_embedder_needs_a_model(tmp_path: Path) -> None:
    with Index.create(tmp_path / "own.index", dimensions=4) as own:
        with pytest.raises(BadInput, match="no model to embed with"):
            _ = own.embedder
        with pytest.raises(BadInput, match="no model to embed with"):
            own.changed(DOCUMENTS)
        with pytest.raises(BadInput, match="needs a Recipe"):
            Embedder(own.recipe, own.passage_settings)  # type: ignore[arg-type]
