"""RTF: what is hidden, what is ignored, what is repeated in Unicode, and binary data."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.readers.formats import rtf


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (rb"\pard{\loch\f0\fs24\*\cs7\cf0 The quiet owl.}\par", "The quiet owl."),
        (rb"{\*\cs10\b Bold words} stay, {\*\unknown not these} nor {\*\generator Writer;}", "Bold words stay, nor"),
        (rb"Body {\upr" + b"\n" + rb"{Tokyo ??}{\*\ud Tokyo \u26481?\u20140?}} end", "Body Tokyo 東京 end"),
        (
            rb"One {\v secret \u8364? \emdash }two{\deleted\f0 old} \v hidden\v0 three \v hidden\plain  four",
            "One two three four",
        ),
        (rb"a{\v{\footnote note}b}c", "ac"),
        (rb"{\pict\wmetafile8\bin6 " + b"\x80\x81}{\xff\xfe" + rb"}After. C:\\bin2 stays", r"After. C:\bin2 stays"),
        (rb"\f1 \'93\'fa\'96\'7b \f0 caf\'e9", "日本 café"),
    ],
)
def test_the_words_that_a_word_processor_shows(tmp_path: Path, source: bytes, text: str) -> None:
    path = tmp_path / "a.rtf"
    path.write_bytes(rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}{\f1\fcharset78 Osaka;}}" + source + b"}")
    content = rtf.read(str(path))
    assert " ".join(content.text.split()) == text
    assert content.unread == ()


def test_a_title_in_unicode(tmp_path: Path) -> None:
    path = tmp_path / "a.rtf"
    path.write_bytes(rb"{\rtf1\ansi{\info{\upr{\title ????}{\*\ud{\title \u26481?\u20140?}}}}\pard Body\par}")
    content = rtf.read(str(path))
    assert (content.title, content.text) == ("東京", "Body")
