"""The originals of documents over HTTP: the file, or the picture of a page. Only if the operator allows it.

A browser opens only pictures, plain text and PDFs by itself, in a sandbox in which nothing runs, and saves everything
else. The viewers of PDFs of Chromium and Firefox work in this sandbox, and open the page that #page= names.
"""

from __future__ import annotations

import re
from codecs import iterdecode
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from likewise.readers.original import NoOriginal
from likewise.service.http.problems import Problem
from likewise.service.http.requests import parameter
from likewise.service.served import ServedIndex

POLICY = "sandbox; default-src 'none'; frame-ancestors 'none'"
"""The Content-Security-Policy of originals."""

MAX_MARKS = 2
_SHOWN = ("text/plain", "application/pdf")
_MARK = re.compile(r"(\d{1,12})-(\d{1,12})", re.ASCII)


def with_original(served: ServedIndex, uri: str, shows_originals: bool) -> dict[str, Any]:
    """Return a document with the media type of its original; None if there is none, or if it is not shown."""
    if shows_originals:
        with suppress(NoOriginal):
            original = served.searcher.original(uri)
            return asdict(original.document) | {"original": original.media_type}
    return asdict(served.searcher.get(uri)) | {"original": None}


def answer_original(served: ServedIndex, request: Request) -> Response:
    """Return the original, or with ?page= the picture of a page, in which up to two ?mark=START-END are marked.

    Raises:
        Problem: 400, a parameter is wrong.
        NoOriginal: 404, the document has no original, no such page, or its file is not as the index has read it.
    """
    original = served.searcher.original(parameter(request, "uri"))
    name, media_type = original.name, original.media_type
    if "page" in request.query_params:
        page = parameter(request, "page")
        if not page.isascii() or not page.isdigit() or not 1 <= len(page) <= 6:
            raise Problem(400, "bad-input", "page is the number of a page, from 1")
        given = [_MARK.fullmatch(mark) for mark in request.query_params.getlist("mark")]
        marks = [(int(mark[1]), int(mark[2])) for mark in given if mark is not None]
        if len(marks) != len(given) or len(marks) > MAX_MARKS:
            raise Problem(400, "bad-input", f"mark is START-END, offsets in the text, at most {MAX_MARKS} times")
        picture = original.page(int(page), marks)
        pieces, size, name, media_type = iter([picture.png]), None, f"{name}-{page}.png", "image/png"
        details = {"Likewise-Pages": str(picture.pages), "Likewise-Marked": "true" if picture.is_marked else "false"}
    else:
        pieces, size, details = original.pieces(), original.size, {}
    first = next(pieces)  # raises what is an answer of its own
    is_shown = media_type in _SHOWN or media_type.startswith("image/")
    if media_type == "text/plain":
        media_type += _charset(original.pieces())
    headers = {
        "Content-Type": media_type,
        "Content-Disposition": f"{'inline' if is_shown else 'attachment'}; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": POLICY,
        "Cache-Control": "private, no-store",
        "Content-Length": str(len(first) if size is None else size),
        **details,
    }
    return StreamingResponse(chain([first], pieces), headers=headers)


def _charset(pieces: Iterator[bytes]) -> str:
    try:
        deque(iterdecode(pieces, "utf-8"), maxlen=0)
    except UnicodeDecodeError:
        return ""
    return "; charset=utf-8"
