"""Metadata that a store loses easily: what it is given must come back equal."""

from __future__ import annotations

from typing import Any

HARD: list[dict[str, Any]] = [
    {},
    {"none": None, "empty": "", "no": [], "nothing": {}},
    {"nested": {"a": {"b": [1, 2.5, "x", None, True, {"c": "d"}]}}},
    {"list": ["b", "a", "a"], "mixed": [1, "1", 1.0, True]},
    {"snow": "☃", "emoji": "👩‍🚀", "combining": "é", "rtl": "שלום", "ключ": "значение"},
    {"pi": 3.141592653589793, "tiny": 5e-324, "huge": 1.7976931348623157e308, "minus": -0.0, "whole": 2.0, "int": 2},
    {"most": 2**63 - 1, "least": -(2**63)},
    {"uri": "u", "title": "t", "path": "p", "format": "f", "modified": "m", "metadata": {"metadata": 1}},
    {"id": 7, "text": "x", "page_content": "y", "score": 1.0, "embedding": [1.0]},
    {"a.b": 1, "a": {"b": 2}, "": "no name", " ": "blank", "and": 1, "`": 2},
    {"quote": "\"'\\", "lines": "a\n\r\n\tb", "control": "\x01\x7f", "sql": "'; drop table document; --"},
    {"date": "2024-02-29T12:00:00+02:00", "day": "2024-02-29", "long": "x" * 5000},
]

REFUSED: list[dict[Any, Any]] = [
    {"tuple": (1, 2)},
    {"deep": {"tuple": [(1,)]}},
    {"set": {1}},
    {"bytes": b"x"},
    {"nan": float("nan")},
    {"infinite": float("inf")},
    {"big": 2**63},
    {1: "key"},
    {"a": {2: "key"}},
    {"broken": "\ud800"},
    {"object": object()},
]
REFUSED_IDS = [str(next(iter(metadata))) for metadata in REFUSED]
