"""The marks of subtitles, which readers do not see: numbers, times and tags."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TIME = r"(?:\d+:)?\d\d?:\d\d?[.,]\d{1,3}"
_CUE = (
    rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}[^\r\n]*(?:\r?\n|$)"
    rf"|</?(?:[cbiuv]|lang|ruby|rt|font)\b[^>\n]{{0,200}}>|<{_TIME}>|\{{\\an\d\}}"
)
_SRT = re.compile(rf"^(?:\d+[ \t]*\r?\n)?{_CUE}", re.MULTILINE)
_WEBVTT = re.compile(
    rf"\AWEBVTT\b[^\n]*(?:\n[^\r\n]+\r?)*|^(?:NOTE|STYLE|REGION)\b[^\n]*(?:\n[^\r\n]+\r?)*"
    rf"|^(?:[^\r\n]+\r?\n)?{_CUE}",
    re.MULTILINE,
)


def subtitle_marks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the numbers, times and tags of SubRip and WebVTT, and the header, notes and styles of WebVTT."""
    pattern = _WEBVTT if text.startswith("WEBVTT") else _SRT
    yield from (match.span() for match in pattern.finditer(text))
