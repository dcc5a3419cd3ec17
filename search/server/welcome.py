"""GET /: a small page that lists the indexes."""

from __future__ import annotations

from html import escape

from search.served import ServedIndexes

POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The Content-Security-Policy of the page, which loads nothing."""


def welcome_page(indexes: ServedIndexes) -> str:
    """Return the page as HTML."""
    rows = "".join(
        f"<tr><td>{escape(described['name'])}</td><td>{described['documents']:,}</td>"
        f"<td>{described['passages']:,}</td><td>{escape(described['model'] or 'vectors of its own')}</td></tr>"
        for described in (served.describe() for served in indexes.values())
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>likewise</title>'
        '<meta name="viewport" content="width=device-width"></head><body><main><h1>likewise</h1>'
        "<table><thead><tr><th>index</th><th>documents</th><th>passages</th><th>model</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        '<p>Ask with <code>POST /v1/indexes/NAME/search</code>; <a href="/openapi.json">every request is described '
        "here</a>.</p></main></body></html>"
    )
