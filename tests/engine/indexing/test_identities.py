"""Hashes and identities, byte for byte: if a value here changes, every document of every index is embedded again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import Document, Index, Recipe, Section
from indexer.encoders.recipes.locate import find_model, fingerprint
from indexer.passages.cut import PassageSettings, passages_identity
from indexer.settings import Meaning
from indexer.stores.hashes import content_hash, row_hash
from indexer.stores.vectors import checksum

MODEL = Recipe("all-MiniLM-L6-v2", "f" * 64, 384, 256)
POOLED = Recipe("bert", "0" * 64, 1536, 512, layers=(-4, -3, -2, -1), combine="concat", pooling="mean")
MEANING = Meaning("0123456789abcdef", "PassageSettings(max_tokens=256, overlap=32)")


@pytest.mark.parametrize(
    ("settings", "identity"),
    [
        (PassageSettings(256), "PassageSettings(max_tokens=256, overlap=32)"),
        (PassageSettings(16, 0), "PassageSettings(max_tokens=16, overlap=0)"),
        (PassageSettings(8192, 4096), "PassageSettings(max_tokens=8192, overlap=4096)"),
        (None, "None"),
    ],
)
def test_passage_settings_are_hashed_as_this_text(settings: PassageSettings | None, identity: str) -> None:
    assert passages_identity(settings) == identity


def stored_hashes(folder: Path) -> list[tuple[str, str]]:
    """Return content and row hash of every document, in the order they were added."""
    with closing(sqlite3.connect(folder / "catalog.db")) as catalog:
        return catalog.execute(
            "SELECT lower(hex(content_hash)), lower(hex(row_hash)) FROM document ORDER BY id"
        ).fetchall()


def test_an_index_hashes_its_recipe_and_its_passage_settings(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "own.index", dimensions=4) as index:
        index.add([PLAIN], vectors=np.eye(4, dtype=np.float32)[:1])
    with Index.create(tmp_path / "model.index", encoder) as index:
        assert index.recipe is not None
        assert index.recipe.identity == "2f295f32e7c8f4bf"
        index.add([PLAIN])
    row = "4f166dce480220757a73dd8e38be45db"
    assert stored_hashes(tmp_path / "own.index") == [("d136edb76e56177c85362323c4436f29", row)]
    assert stored_hashes(tmp_path / "model.index") == [("fdf20781f5b44b5a491cadd4e5ef0865", row)]
    assert (
        content_hash(PLAIN, Meaning("2f295f32e7c8f4bf", "PassageSettings(max_tokens=32, overlap=8)")).hex()
        == "fdf20781f5b44b5a491cadd4e5ef0865"
    )


@pytest.mark.parametrize(
    ("recipe", "identity"),
    [
        (MODEL, "d9b098f902a9cbf8"),
        (replace(MODEL, model="/elsewhere/the-same-model"), "d9b098f902a9cbf8"),
        (POOLED, "b2196231f1752a8a"),
        (
            Recipe(
                *("bert", "0" * 64, 768, 512),
                layers=(-2,),
                pooling="weighted_mean",
                query_prompt="query: ",
                document_prompt="passage: ",
            ),
            "1622a1bb3be82dcc",
        ),
    ],
)
def test_the_identity_of_a_recipe(recipe: Recipe, identity: str) -> None:
    assert recipe.identity == identity


def test_a_recipe_as_it_is_stored() -> None:
    assert POOLED.to_json() == (
        '{"model": "bert", "fingerprint": "0000000000000000000000000000000000000000000000000000000000000000", '
        '"dimensions": 1536, "max_tokens": 512, "layers": [-4, -3, -2, -1], "combine": "concat", "pooling": "mean", '
        '"query_prompt": "", "document_prompt": "", "normalize": true}'
    )
    assert Recipe.from_json(POOLED.to_json()) == POOLED


PLAIN = Document("a", "one two")
RICH = Document(
    "b", "Zwölf Boxkämpfer — 数据 🙂", "Ü", {"year": 2024, "tags": ["x", None, True], "deep": {"b": 1.5, "a": "ä"}}
)
FILE = Document(
    *("/golden/a.md", "# One\n\ntext\n", "One", {}, "/golden/a.md", "markdown", "2024-01-02T03:04:05Z"),
    sections=(Section(0, "One"), Section(7, "One > Two", 3)),
)
RECORD = Document("r1", "row", "t", {"n": 1}, "/golden/r.csv", "csv", "2024-01-02T03:04:05Z")


@pytest.mark.parametrize(
    ("document", "with_model", "with_vectors", "row"),
    [
        (
            PLAIN,
            "f1d35bf508b50a9f5538c6f8d9d4bff7",
            "3611a5c3918bafa76ea481862ab2dc15",
            "4f166dce480220757a73dd8e38be45db",
        ),
        (
            RICH,
            "3393768dcc1831d9b5c79abfd9553bb5",
            "9118a84379a3e8f417bd9c18522ce58e",
            "bbda1024372a21eb2c468222e54bcd1a",
        ),
        (
            FILE,
            "b48a436a7c4e5c4c467aaf7159e7e1f3",
            "956fa51c197902063ca19e979e8bb26a",
            "97dab3dbaad211863cb3f3b98b87e60c",
        ),
        (
            RECORD,
            "7cdd1e34aa8c8271addac4b3a878c269",
            "dfbe35dd989fd1376b07d1c3e500019f",
            "e0f8970a693d250afd55857da05d73cd",
        ),
    ],
    ids=["plain", "rich", "file", "record"],
)
def test_the_hashes_of_a_document(document: Document, with_model: str, with_vectors: str, row: str) -> None:
    assert content_hash(document, MEANING).hex() == with_model
    assert content_hash(document, Meaning("", "None"), bytes(range(8))).hex() == with_vectors
    assert row_hash(document).hex() == row


def test_the_time_of_a_file_counts_for_the_file_and_not_for_its_records() -> None:
    later = "2025-01-01T00:00:00Z"
    assert row_hash(replace(RECORD, modified=later)) == row_hash(RECORD)
    assert row_hash(replace(FILE, modified=later)) != row_hash(FILE)


def test_the_checksum_of_a_passage() -> None:
    assert checksum("Zwölf", bytes(range(16))).hex() == "39661a825fe848d0"


def test_the_fingerprint_of_a_model(tmp_path: Path) -> None:
    for name, content in (("model.safetensors", b"weights"), ("config.json", b"{}"), ("README.md", b"not counted")):
        (tmp_path / name).write_bytes(content)
    assert fingerprint(tmp_path) == "9ec0cdbf409d290232d4880f3811897c2575ea24bc891a672ba9b1e4b6e9d9f5"
    assert (
        fingerprint(find_model("all-MiniLM-L6-v2"))
        == "c006c9485a9bef2b32fa4211f98d5bc526db0fde6c16cd541e38233f4eced8ea"
    )
