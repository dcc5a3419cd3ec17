"""The classes of errors: what catches them, and with which exit code and HTTP status they end."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import likewise.endpoints.endpoint
import likewise.service.served  # noqa: F401  # both have errors of their own
from indexer import BadInput, Index, LikewiseError, ModelError, NotAnIndex, UnknownUri, errors
from indexer.errors import Message
from search import Searcher

OUTCOMES = {
    "BadInput": (2, 400, "bad-input"),
    "DeadlinePassed": (3, 503, "too-slow"),
    "DiskFull": (3, 507, "disk-full"),
    "EndpointUnavailable": (3, 502, "endpoint-unavailable"),
    "FilterError": (2, 400, "bad-filter"),
    "IndexDamaged": (3, 500, "index-damaged"),
    "IndexLocked": (3, 503, "locked"),
    "IndexUnavailable": (3, 503, "index-unavailable"),
    "LikewiseError": (2, 400, "bad-input"),
    "ModelError": (2, 500, "model-error"),
    "NewerFormat": (3, 500, "newer-format"),
    "NoWords": (2, 400, "no-words"),
    "NotAnIndex": (2, 503, "index-unavailable"),
    "NotPermitted": (3, 500, "not-permitted"),
    "NothingKnown": (2, 400, "model-error"),
    "OlderFormat": (3, 500, "older-format"),
    "RecipeMismatch": (2, 400, "recipe-mismatch"),
    "SourceError": (2, 400, "bad-input"),
    "StorageError": (3, 500, "storage"),
    "TextTooLong": (2, 400, "text-too-long"),
    "UnknownField": (2, 400, "unknown-field"),
    "UnknownUri": (2, 404, "unknown-uri"),
    "UnsupportedSystem": (3, 500, "unsupported-system"),
    "WordsBuilding": (3, 503, "words-building"),
    "WorkersLost": (3, 503, "workers-lost"),
}
"""Exit code, HTTP status and slug of each class. Programs and clients depend on them."""

BAD_INPUT = {"BadInput", "SourceError", "FilterError", "UnknownField", "NoWords", "UnknownUri", "RecipeMismatch"}
KINDS = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, LikewiseError)
}


def test_exit_codes_statuses_and_slugs() -> None:
    assert {name: (kind.exit_code, kind.http_status, kind.slug) for name, kind in KINDS.items()} == OUTCOMES


def test_what_the_built_in_classes_catch() -> None:
    assert {name for name, kind in KINDS.items() if issubclass(kind, BadInput)} == BAD_INPUT
    assert {name for name, kind in KINDS.items() if issubclass(kind, ValueError)} == BAD_INPUT
    assert {name for name, kind in KINDS.items() if issubclass(kind, KeyError)} == {"UnknownUri"}
    assert NotAnIndex.__bases__ == ModelError.__bases__ == (LikewiseError,)


def test_an_unknown_uri_is_a_key_error_whose_message_has_no_quotation_marks(tmp_path: Path) -> None:
    Index.create(tmp_path / "an.index", dimensions=2).close()
    with Searcher(tmp_path / "an.index") as searcher, pytest.raises(KeyError) as caught:
        searcher.get("nothing")
    assert type(caught.value) is UnknownUri
    assert str(caught.value) == f"{tmp_path / 'an.index'}: has no document 'nothing'"


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "FilterSyntaxError": ("a number is missing", "write one", "year >= ", 8),
    "NothingKnown": ([1, 2], "a-model"),
    "Rejected": ("too long", "the answer"),
    "TextTooLong": (3, 600, 512),
    "UnknownField": ("no such field", "lang"),
}
"""The arguments of the classes that take more than a message."""


def every_kind(kind: type[LikewiseError] = LikewiseError) -> set[type[LikewiseError]]:
    return {kind}.union(*(every_kind(below) for below in kind.__subclasses__()))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", sorted(every_kind(), key=lambda kind: kind.__name__))
def test_an_error_keeps_its_message_and_its_members_in_another_process(kind: Any, protocol: int) -> None:
    assert set(ARGUMENTS) <= {each.__name__ for each in every_kind()}
    error = kind(*ARGUMENTS.get(kind.__name__, (Message("went wrong", " (likewise check)"),)))
    error.add_note("in a worker")
    back = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301
    assert (type(back), str(back), back.args) == (kind, str(error), error.args)
    assert vars(back) == vars(error)
    assert errors.in_shell(back) == errors.in_shell(error)
