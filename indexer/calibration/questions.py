"""Questions that no collection answers: the scores of an index's best hits for them are its background.

The questions are worded as people ask, cover many fields of life, and ask for things that are written nowhere. A broad
collection would answer questions about common knowledge, and its background would then seem as high as its answers.
"""

from pathlib import Path

UNRELATED_QUESTIONS = tuple(
    Path(__file__).with_name("unrelated_questions.txt").read_text(encoding="utf-8").splitlines()
)
