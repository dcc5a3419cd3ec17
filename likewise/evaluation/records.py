"""Reading files of questions and judgments: text in UTF-8, and objects in lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from indexer.errors import BadInput


def read_text(path: str | Path) -> str:
    """Return the text of a file. Raises BadInput if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read ({error}): name a file of UTF-8 text") from error


def read_object(place: str, line: str, form: str) -> dict[str, Any]:
    """Return the object in a line of JSON.

    Args:
        place: "FILE:LINE", for messages.
        form: what each line must be, for messages.

    Raises:
        BadInput: the line is not JSON, or not an object.
    """
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInput(f"{place}: not JSON ({error.msg}): each line must be {form}") from None
    if not isinstance(record, dict):
        raise BadInput(f"{place}: not an object: each line must be {form}")
    return record
