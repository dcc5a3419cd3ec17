"""Answers in JSON, encoded by msgspec: json.dumps took a tenth of the time of a words request."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette import responses


class JSONResponse(responses.JSONResponse):
    """An answer in JSON. Numbers are the same as json.dumps writes, once they are parsed."""

    def render(self, content: Any) -> bytes:
        return encode(content)


def encode(content: Any) -> bytes:
    """Return a value as JSON in UTF-8."""
    return msgspec.json.encode(content)
