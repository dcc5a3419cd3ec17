"""Finding the ends of sentences: for cutting passages, for pseudo-questions and for the sentence that a hit shows."""

from __future__ import annotations

from indexer.lazy_pattern import lazy_pattern

# A match ends where the next paragraph or sentence begins.
PARAGRAPH = lazy_pattern(r"\n[ \t\r]*\n\s*")
SENTENCE = lazy_pattern(r"""[.!?…]["'”’)\]]*\s+|[。！？．][」』”’）]*\s*""")
_EITHER = lazy_pattern(f"{SENTENCE.pattern}|{PARAGRAPH.pattern}")


def sentence_ends(text: str) -> list[int]:
    """Return the offsets, in code points, at which one sentence ends and the next begins."""
    return [match.end() for match in _EITHER.finditer(text) if match.end() < len(text)]
