"""Errors as answers: problem details (RFC 9457), or OpenAI's form for /v1/embeddings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException

from indexer.errors import LikewiseError, UnknownField
from likewise.service.http.json_response import JSONResponse
from likewise.service.served import ServedIndexes

RETRY_AFTER_S = 1
"""Seconds after which a refused client may try again. A full queue is empty again in less time."""

_log = logging.getLogger("likewise.server")


class Problem(Exception):
    """A request that is refused.

    Attributes:
        status: HTTP status.
        slug: short name for programs, in lower case with hyphens.
        detail: what is wrong and what to do, for people.
        headers: headers of the answer.
        field: the field that no document has, for the slug unknown-field.
    """

    def __init__(
        self, status: int, slug: str, detail: str, headers: Mapping[str, str] | None = None, field: str | None = None
    ) -> None:
        super().__init__(detail)
        self.field = field
        self.status, self.slug, self.detail = status, slug, detail
        self.headers = dict(headers or {})
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.headers.setdefault("Retry-After", str(RETRY_AFTER_S))

    def as_json(self) -> dict[str, Any]:
        """Return the members of RFC 9457, and `slug`."""
        field = {} if self.field is None else {"field": self.field}
        return field | {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "slug": self.slug,
        }

    def response(self, path: str) -> JSONResponse:
        """Return the answer to a request for this path: problem details, or OpenAI's form for the paths of OpenAI's
        clients."""
        if not path.endswith("/v1/embeddings"):
            media_type = "application/problem+json"
            return JSONResponse(self.as_json(), self.status, headers=self.headers, media_type=media_type)
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"message": self.detail, "type": kind, "param": None, "code": self.slug.replace("-", "_")}
        return JSONResponse({"error": error}, self.status, headers=self.headers)


def problem_of(error: Exception, indexes: ServedIndexes) -> Problem:
    """Return the message for a client about an error. Causes on the server's side go to the log instead."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        detail = _HTTP_DETAILS.get(error.status_code, phrase.lower())
        return Problem(error.status_code, phrase.lower().replace(" ", "-"), detail, error.headers)
    if isinstance(error, LikewiseError):
        field = error.field if isinstance(error, UnknownField) else None
        return Problem(error.http_status, error.slug, indexes.for_client(error), field=field)
    _log.error("a request failed", exc_info=error)
    return Problem(500, "internal", "the service failed: its operator finds the reason in the log")


_HTTP_DETAILS = {
    404: "there is nothing at this address: /openapi.json lists all addresses",
    405: "this address does not accept this method: /openapi.json lists the accepted methods",
}
