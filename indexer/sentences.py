"""Where sentences end: the same for cutting passages, for pseudo-questions and for the sentence that is shown."""

from __future__ import annotations

import re

# Each ends where the next one begins.
PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")
SENTENCE = re.compile(r"""[.!?…]["'”’)\]]*\s+|[。！？．][」』”’）]*\s*""")
_EITHER = re.compile(f"{SENTENCE.pattern}|{PARAGRAPH.pattern}")


def sentence_ends(text: str) -> list[int]:
    """Offsets at which sentences end and the next begin, inside the text."""
    return [match.end() for match in _EITHER.finditer(text) if match.end() < len(text)]
