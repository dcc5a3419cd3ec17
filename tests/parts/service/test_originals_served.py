"""Originals over HTTP: off by default, in a sandbox, and never to other machines without a token."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pdf_files
import pytest
from starlette.testclient import TestClient

from indexer.errors import BadInput
from likewise.readers import original
from likewise.service import create_app
from likewise.service.http.originals import POLICY

ORIGINAL = "/v1/indexes/files/original"


@pytest.fixture
def files(tmp_path: Path, likewise: Callable[..., Any]) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    pdf_files.write(folder / "päper.pdf", "BT /F1 12 Tf 50 700 Td (The moon orbits the earth.) Tj ET")
    (folder / "page.html").write_text("<title>Bread</title><p>Bread is baked<script>alert(1)</script>")
    (folder / "code.py").write_text("def bake():\n    return 'brød'\n", "utf-8")
    for file in folder.iterdir():
        os.utime(file, (1_700_000_000, 1_700_000_000))
    likewise("index", tmp_path / "files.index", folder)
    return folder


def test_originals_are_shown_if_the_operator_allows_it(
    files: Path, tmp_path: Path, open_client: Callable[..., TestClient]
) -> None:
    uri = {name: str(files / name) for name in ("päper.pdf", "page.html", "code.py")}
    closed = open_client({"files": tmp_path / "files.index"})
    refused = closed.get(ORIGINAL, params={"uri": uri["code.py"]})
    assert (refused.status_code, refused.json()["slug"]) == (403, "no-originals")
    document = "/v1/indexes/files/document"
    assert closed.get(document, params={"uri": uri["code.py"]}).json()["original"] is None

    client = open_client({"files": tmp_path / "files.index"}, originals=True)
    assert client.get(document, params={"uri": uri["päper.pdf"]}).json()["original"] == "application/pdf"
    answers = {name: client.get(ORIGINAL, params={"uri": each}) for name, each in uri.items()}
    for name, answer in answers.items():
        assert answer.content == (files / name).read_bytes()
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
    sent = {name: (a.headers["content-type"], a.headers["content-disposition"]) for name, a in answers.items()}
    assert sent == {
        "päper.pdf": ("application/pdf", "inline; filename*=UTF-8''p%C3%A4per.pdf"),
        "page.html": ("application/octet-stream", "attachment; filename*=UTF-8''page.html"),
        "code.py": ("text/plain; charset=utf-8", "inline; filename*=UTF-8''code.py"),
    }
    page = client.get(ORIGINAL, params={"uri": uri["päper.pdf"], "page": 1, "mark": ["0-26", "4-8"]})
    assert (page.headers["content-type"], page.content[:4]) == ("image/png", b"\x89PNG")
    assert (page.headers["likewise-marked"], page.headers["likewise-pages"]) == ("true", "1")
    assert page.headers["content-security-policy"] == POLICY

    for wrong in ({"page": "0x"}, {"page": 1, "mark": "a"}, {"page": 1, "mark": ["0-1"] * 3}):
        assert client.get(ORIGINAL, params={"uri": uri["päper.pdf"], **wrong}).status_code == 400
    missing = [{"uri": uri["päper.pdf"], "page": 2}, {"uri": uri["code.py"], "page": 1}, {"uri": "/etc/passwd"}]
    assert [client.get(ORIGINAL, params=each).status_code for each in missing] == [404, 404, 404]
    (files / "code.py").write_text("changed")
    answer = client.get(ORIGINAL, params={"uri": uri["code.py"]})
    assert (answer.status_code, answer.json()["slug"]) == (404, "no-original")


def test_originals_are_sent_in_pieces_and_a_folder_in_their_place_is_none(
    files: Path, tmp_path: Path, open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(original, "PIECE_BYTES", 7)  # cuts a character of code.py in two
    client = open_client({"files": tmp_path / "files.index"}, originals=True)
    for name, kind in (("code.py", "text/plain; charset=utf-8"), ("päper.pdf", "application/pdf")):
        content = (files / name).read_bytes()
        answer = client.get(ORIGINAL, params={"uri": str(files / name)})
        assert answer.content == content
        assert (answer.headers["content-type"], answer.headers["content-length"]) == (kind, str(len(content)))
    (files / "code.py").unlink()
    (files / "code.py").mkdir()
    descriptors = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        answer = client.get(ORIGINAL, params={"uri": str(files / "code.py")})
        assert (answer.status_code, answer.json()["slug"]) == (404, "no-original")
    assert len(list(Path("/dev/fd").iterdir())) == descriptors


def test_other_machines_need_a_token_for_originals(papers: Path) -> None:
    with pytest.raises(BadInput, match="only with a token"):
        create_app({"papers": str(papers)}, originals=True, loopback_only=False)
