"""Finding the ends of sentences: for cutting passages, for pseudo-questions and for the sentence that a hit shows."""

from __future__ import annotations

import re

# A match ends where the next paragraph or sentence begins.
PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")
SENTENCE = re.compile(r"""[.!?…]["'”’)\]]*\s+|[。！？．][」』”’）]*\s*""")
_EITHER = re.compile(f"{SENTENCE.pattern}|{PARAGRAPH.pattern}")


def sentence_ends(text: str) -> list[int]:
    """Return the offsets, in code points, at which one sentence ends and the next begins."""
    return [match.end() for match in _EITHER.finditer(text) if match.end() < len(text)]
