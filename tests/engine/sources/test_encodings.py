"""The one place where bytes become text: labels as browsers read them, escapes, guesses, and what is noted."""

from __future__ import annotations

import pytest

from indexer.sources.encoding import decode_labelled, decode_text


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [
        ("gb2312", "gbk", "朱镕基访问了东京"),
        ("GBK", "gb18030", "㐂 is rare"),
        ("shift_jis", "cp932", "①髙橋"),
        ("x-sjis", "cp932", "㈱はしご髙"),
        ("euc-kr", "cp949", "똠방각하와 펲시콜라"),
        ("ks_c_5601-1987", "cp949", "똠방각하"),
        ("big5", "big5hkscs", "香港嘅"),
        ("iso-8859-1", "cp1252", "It’s 20 €"),
        ("utf-8*en", "utf-8", "naïve"),
        ("iso-8859-9", "cp1254", "“İstanbul” – şehir"),
        ("tis-620", "cp874", "“สวัสดี…”"),
        ("windows-874", "cp874", "สวัสดี"),
        ("x-mac-cyrillic", "mac-cyrillic", "Съешь"),
        ("us-ascii", "utf-8", "Grüße aus Köln"),
        ("utf-16", "utf-8", "a page that says what it is not: ü"),
        ("utf-16", "utf-16", "wide"),
        ("gb2312", "utf-8-sig", "新闻"),
        ("gb2312", "utf-8", "我们的中文页面"),
        ("rot13", "utf-8", "no encoding of text: ü"),
    ],
)
def test_a_label_stands_for_its_superset(label: str, encoding: str, text: str) -> None:
    assert decode_labelled(text.encode(encoding), label) == (text, ())


def test_japanese_with_the_rows_of_vendors() -> None:
    escaped = b"\x1b$B-!8$|\x22\x1b(B and \x1b(I1\x1b(B\n"
    assert decode_labelled(escaped, "iso-2022-jp") == ("①犬釞 and ｱ\n", ())
    assert decode_text(escaped) == ("①犬釞 and ｱ\n", ())
    assert decode_labelled(b"\xad\xa1\xb8\xa4\xfc\xe2", "euc-jp") == ("①犬髙", ())
    assert decode_labelled(b"20 \xa3\xe1", "big5") == ("20 €", ())
    assert decode_text("똠 글".replace("똠", "한").encode("iso2022_kr")) == ("한 글", ())
    assert decode_text(b"\x1b[31mred\x1b(B\n") == ("\x1b[31mred\x1b(B\n", ())


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("mac-roman", "Die Brücke über die Donau ist schön. Größe und Maß.\n"),
        ("mac-roman", "L’élève français a reçu une bonne note à l’école – « bravo »\n"),
        ("mac-latin2", "Příliš žluťoučký kůň úpěl ďábelské ódy\n"),
        ("mac-cyrillic", "Съешь ещё этих мягких французских булок, да выпей чаю.\n"),
    ],
)
def test_few_bytes_decide_a_guess_with_a_note(encoding: str, text: str) -> None:
    decoded = decode_text(text.encode(encoding))
    assert decoded is not None
    assert decoded.text == text
    count = len(text.encode(encoding).translate(None, bytes(range(128))))
    assert [note.text() for note in decoded.notes] == [
        f"encoding guessed: {encoding} (bytes beyond ASCII: {count}): save it as UTF-8 if its text looks wrong"
    ]
    assert decode_text(text.encode(encoding) * 40) == (text * 40, ())


def test_one_line_in_another_encoding() -> None:
    decoded = decode_text("mit Brücke\n".encode() + "mit Größe\n".encode("latin-1"))
    assert decoded is not None
    assert decoded.text == "mit Brücke\nmit Größe\n"
    assert decoded.notes[0].arguments == ("cp1252", "2")


def test_lines_that_are_utf_8_by_coincidence() -> None:
    text = "我们的中文页面很好看。\n" * 40 + "联通\n"  # its bytes are UTF-8 too
    assert decode_text(text.encode("gbk")) == (text, ())


def test_characters_that_do_not_fit_the_label_are_counted() -> None:
    decoded = decode_labelled("naïve café, ".encode() + b"\xff\xfe", "utf-8")
    assert decoded.text == "naïve café, \ufffd\ufffd"
    assert [note.text() for note in decoded.notes] == ["2 of its characters cannot be read as utf-8: save it as UTF-8"]
    guessed = decode_labelled("Die Straße führt über die Brücke.".encode("cp1252"), "utf-8")
    assert guessed.text == "Die Straße führt über die Brücke."
    assert guessed.notes[0].arguments == ("cp1252", "4")
