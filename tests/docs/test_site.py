"""The Python reference of the site names everything public. `make check` builds the site and tests its links."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import likewise

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
_OTHERS = {
    "likewise.client.Client",
    "likewise.service.create_app",
    "likewise.adapters.langchain.LikewiseVectorStore",
    "likewise.adapters.llamaindex.LikewiseVectorStore",
    "likewise.adapters.haystack.LikewiseDocumentStore",
}


def test_every_public_name_is_in_the_reference_once() -> None:
    listed = re.findall(r"^::: ([\w.]+)$", PAGE, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert {name for name in listed if name.startswith("likewise.")} == _OTHERS
    names = [name.rpartition(".") for name in listed if name not in _OTHERS]
    assert {name for *_, name in names} == set(likewise.__all__)
    for package, _, name in names:
        assert getattr(import_module(package), name) is getattr(likewise, name)
