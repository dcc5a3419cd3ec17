"""Jupyter notebooks as Markdown: cells of code and their printed outputs as code blocks, without pictures.

Versions 3 to 5 of the format are read (https://nbformat.readthedocs.io/en/latest/format_description.html).
"""

# ruff: noqa: PTH123
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from indexer.sources.content import Assembly, Content
from indexer.sources.files import markdown

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FENCE = re.compile("`{3,}")


def read(path: str) -> Content:
    """Read a file. Its first top heading is the title, and sections begin at headings, as in Markdown."""
    with open(path, "rb") as file:
        notebook = json.load(file)
    sheets = notebook.get("worksheets") or [notebook]  # version 3 had sheets
    language = notebook.get("metadata", {}).get("language_info", {}).get("name", "")
    assembly = Assembly()
    for cell in (cell for sheet in sheets for cell in sheet["cells"]):
        if cell["cell_type"] == "code":
            assembly.add(_code_block(cell.get("source", cell.get("input", "")), language))
            for printed in _printed(cell.get("outputs", ())):
                assembly.add(_code_block(printed))
        else:
            assembly.add("".join(cell["source"]))
    return markdown.read(assembly.content().text)


def _code_block(lines: str | list[str], language: str = "") -> str:
    code = _COLOUR.sub("", "".join(lines)).strip("\r\n")
    fence = max(["```", *(f"{inside}`" for inside in _FENCE.findall(code))], key=len)
    return f"{fence}{language}\n{code}\n{fence}" if code.strip() else ""


def _printed(outputs: list[dict[str, Any]]) -> Iterator[str | list[str]]:
    """Yield what a person reads below a cell: printed text, results and errors, without the text of a picture."""
    for output in outputs:
        data = output.get("data", output)
        if output["output_type"] in ("error", "pyerr"):
            yield f"{output['ename']}: {output['evalue']}"
        elif output.get("name", output.get("stream")) != "stderr" and not any("image/" in kind for kind in data):
            yield data.get("text/plain") or data.get("text") or ""
