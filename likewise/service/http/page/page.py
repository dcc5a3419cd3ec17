"""The files of the page, and how they are served.

The policy lets the page load nothing from elsewhere, run no script or style inside of HTML, and parse no text as HTML:
`require-trusted-types-for` makes the browser refuse `innerHTML` and similar calls, and no policy allows exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

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
_SCRIPTS = ("early.js", "page.js", "map.js")
"""The modules that begin a script: what asks the first question, the page, and what it imports when it is needed."""
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w.]+)";$', re.MULTILINE)
_COMMENT_OR_INDENTATION = re.compile(r"^[ \t]*(?://[^\n]*\n|/\*\*.*?\*/\n)?", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)


class Page:
    """The files of the page, read once. The modules are joined to three scripts, without comments and indentation.

    With 400 ms per round trip, a browser has twenty modules after four round trips, although it is told of all of
    them at first. The map is a third of the modules, and most visits do without it. The first script is a tenth, and
    asks the question of the address while the others arrive. The addresses contain a hash of
    all files: a browser keeps the files for a year, and an old script never meets a new service, because the first
    page, for which a browser asks each time, names the files of this version.
    """

    def __init__(self) -> None:
        files = {file.name: file.read_bytes() for file in FOLDER.iterdir() if file.suffix in _TYPES}
        modules: dict[str, str] = {}
        scripts: dict[str, bytes] = {}
        for script in _SCRIPTS:
            imports = [f'import {{ {", ".join(modules.values())} }} from "./{name}";\n' for name in [*scripts][-1:]]
            source = "".join(_joined(files, script, modules))
            exports = f"export {{ {', '.join(modules.values())} }};\nexport default {modules[script]};\n"
            scripts[script] = "".join([*imports, source, exports]).encode()
        self._files = {name: content for name, content in files.items() if not name.endswith(".js")} | scripts
        self._version = sha256(b"\0".join(self._files[name] for name in sorted(self._files))).hexdigest()[:16]
        self._files[_FIRST] = self._files[_FIRST].replace(b'"page/', f'"page/{self._version}/'.encode())
        self._tag = f'"{sha256(self._files[_FIRST]).hexdigest()[:32]}"'

    def first(self, request: Request) -> Response:
        """Answer GET /, with 304 if the browser has it already."""
        headers = {"ETag": self._tag, "Cache-Control": "no-cache"}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if self._tag in known or "*" in known:
            return Response(status_code=304, headers=headers)
        return self._answer(_FIRST, headers)

    def file(self, request: Request) -> Response:
        """Answer GET /page/{version}/{file}.

        Raises:
            HTTPException: 404, this version of the page has no such file.
        """
        name = request.path_params["file"]
        if name == _FIRST or name not in self._files or request.path_params["version"] != self._version:
            raise HTTPException(404)
        return self._answer(name, {"Cache-Control": "private, max-age=31536000, immutable"})

    def _answer(self, name: str, headers: dict[str, str]) -> Response:
        headers |= {"Content-Security-Policy": POLICY, "Cross-Origin-Opener-Policy": "same-origin"}
        return Response(self._files[name], headers=headers | {"Content-Type": _TYPES[Path(name).suffix]})


def _joined(files: Mapping[str, bytes], name: str, seen: dict[str, str]) -> Iterator[str]:
    """Yield a module after the modules that it imports, each once and each as a function that returns its exports."""
    source = _COMMENT_OR_INDENTATION.sub("", files[name].decode())
    for _, imported in _IMPORT.findall(source):
        if imported not in seen:
            yield from _joined(files, imported, seen)
    seen[name] = variable = f"module{len(seen)}"
    exported = ", ".join(found for _, found in _EXPORT.findall(source))
    source = _EXPORT.sub(r"\1", _IMPORT.sub(lambda match: f"const {match[1]} = {seen[match[2]]};", source))
    yield f"const {variable} = (() => {{\n{source}return {{ {exported} }};\n}})();\n"


class CompressedForBrowsers:
    """ASGI middleware that compresses answers to browsers. Programs usually ask from near, and gain nothing by it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._compressed = app, GZipMiddleware(app, minimum_size=1000, compresslevel=6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_browser = scope["type"] == "http" and any(name == b"sec-fetch-mode" for name, _ in scope["headers"])
        await (self._compressed if is_browser else self._app)(scope, receive, send)
