"""Jupyter notebooks as Markdown: cells of code and their results, as code blocks or Markdown, without pictures.

Versions 3 to 5 of the format are read (https://nbformat.readthedocs.io/en/latest/format_description.html).
"""

# ruff: noqa: PTH123
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly, Content, Unreadable
from indexer.sources.files import markdown
from likewise.readers.formats import html

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FENCE = re.compile("`{3,}")


def read(path: str) -> Content:
    """Read a file. Its first top heading is the title, and sections begin at headings, as in Markdown."""
    with open(path, "rb") as file:
        notebook = json.load(file)
    assembly, unread, place = Assembly(), list[Reason](), "its list of cells"
    try:
        sheets = notebook.get("worksheets") or [notebook]  # version 3 had sheets
        language = notebook.get("metadata", {}).get("language_info", {}).get("name", "")
        for number, cell in enumerate((cell for sheet in sheets for cell in sheet["cells"]), 1):
            place = f"cell {number}"
            if cell["cell_type"] == "code":
                assembly.add(_code_block(cell.get("source", cell.get("input", "")), language))
                for printed in _printed(cell.get("outputs", ()), unread):
                    assembly.add(printed)
            else:
                assembly.add("".join(cell["source"]))
    except (LookupError, TypeError, AttributeError) as error:
        raise Unreadable(Code.READER_FAILED("ipynb", f"{place} is not as the format asks")) from error
    content = markdown.read(assembly.content().text)
    return replace(content, unread=(*content.unread, *unread))


def _code_block(lines: str | list[str], language: str = "") -> str:
    code = _COLOUR.sub("", "".join(lines)).strip("\r\n")
    fence = max(["```", *(f"{inside}`" for inside in _FENCE.findall(code))], key=len)
    return f"{fence}{language}\n{code}\n{fence}" if code.strip() else ""


def _printed(outputs: list[dict[str, Any]], unread: list[Reason]) -> Iterator[str]:
    """Yield what a person reads below a cell in Markdown: printed text, results and errors.

    A result is Markdown or the text of a page, or else its plain text. The plain text of a picture is left out.

    Args:
        unread: gets a note on each page that is damaged.
    """
    for output in outputs:
        data = output.get("data", output)
        if output["output_type"] in ("error", "pyerr"):
            yield _code_block(f"{output['ename']}: {output['evalue']}")
        elif output.get("name", output.get("stream")) != "stderr":
            page = _text_of_page("".join(data.get("text/html") or data.get("html") or ""), unread)
            if written := "".join(data.get("text/markdown") or ""):
                yield written
            elif page or not any("image/" in kind for kind in data):
                yield _code_block(page or data.get("text/plain") or data.get("text") or "")


def _text_of_page(page: str, unread: list[Reason]) -> str:
    assembly = Assembly()
    try:
        html.write_page(page, assembly)
    except Unreadable as error:
        unread.append(Code.INSIDE_NOT_WHOLE("a result in HTML", error))
    return assembly.content().text
