"""The files of the page, and how they are served.

The policy lets the page load nothing from elsewhere, run no script or style inside of HTML, and parse no text as HTML:
`require-trusted-types-for` makes the browser refuse `innerHTML` and similar calls, and no policy allows exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The Content-Security-Policy of the page and its files."""

FOLDER = Path(__file__).with_name("assets")
_FIRST = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """A file of the page.

    Attributes:
        content: its bytes.
        headers: the headers of its answer. A browser asks each time, and gets 304 while the ETag is the same: files
            change with the version of likewise, and an old script must not meet a new service.
    """

    content: bytes
    headers: Mapping[str, str]

    def answer(self, request: Request) -> Response:
        """Return the file, or 304 if the browser has it already."""
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if self.headers["ETag"] in known or "*" in known:
            return Response(status_code=304, headers={name: self.headers[name] for name in ("ETag", "Cache-Control")})
        return Response(self.content, headers=self.headers)


class Page:
    """The files of the page, read once."""

    def __init__(self) -> None:
        files = sorted(file for file in FOLDER.iterdir() if file.suffix in _TYPES)
        self._assets = {file.name: _asset(file) for file in files}

    def first(self, request: Request) -> Response:
        """Answer GET /."""
        return self._assets[_FIRST].answer(request)

    def file(self, request: Request) -> Response:
        """Answer GET /page/{file}.

        Raises:
            HTTPException: 404, the page has no such file.
        """
        name = request.path_params["file"]
        if name == _FIRST or name not in self._assets:  # the addresses in it are relative to /
            raise HTTPException(404)
        return self._assets[name].answer(request)


def _asset(file: Path) -> Asset:
    content = file.read_bytes()
    return Asset(
        content,
        {
            "Content-Type": _TYPES[file.suffix],
            "ETag": f'"{sha256(content).hexdigest()[:32]}"',
            "Cache-Control": "no-cache",
            "Content-Security-Policy": POLICY,
            "Cross-Origin-Opener-Policy": "same-origin",
        },
    )
