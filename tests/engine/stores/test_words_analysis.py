"""The terms of a text (stems, names, versions, pairs of characters), and the texts that are found by them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from opened import snapshot_of, writer_of

from indexer import Document, Index
from indexer.errors import BadInput
from indexer.stores.words.analysis import LANGUAGES, Analysis, characters, close_up, code
from search.hits.marks import QuestionWords


def found(tmp_path: Path, texts: list[str], question: str, language: str = "en") -> list[int]:
    """Positions of the texts that a question finds, best first."""
    with Index.create(tmp_path / "x.index", dimensions=2, language=language) as index:
        rows = np.ones((len(texts), 2), np.float32)
        index.add([Document(str(number), text) for number, text in enumerate(texts)], vectors=rows)
        writer_of(index).settle()
        return [id_ - 1 for id_ in snapshot_of(index).words(question, 100).passages.tolist()]


NAMES = [
    "call parse_json_file on it",
    "parse the json of a file and parse the file again",
    "class HTTPServer handles it",
    "released as v2.3.1 in May",
    "json alone",
    "an http request reaches the server",
    "2.3.2 is another release",
    "written in C++ and C#",
    "import os.path.join",
]


@pytest.mark.parametrize(
    ("question", "first", "also"),
    [
        ("parse_json_file", 0, {1, 4}),
        ("json", 4, {0, 1}),
        ("HTTPServer", 2, {5}),
        ("httpserver", 2, set()),
        ("http server", 2, {5}),
        ("v2.3.1", 3, set()),
        ("2.3.1", 3, set()),
        ("2.3.2", 6, set()),
        ("c++", 7, set()),
        ("os.path", 8, set()),
    ],
)
def test_names_and_versions_are_found_whole_and_by_part(
    tmp_path: Path, question: str, first: int, also: set[int]
) -> None:
    ranked = found(tmp_path, NAMES, question)
    assert ranked[0] == first
    assert also <= set(ranked)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("北\n京 的", ["北京", "京的"]),
        ("上 \r\n \t海\u3000博", ["上海", "海博"]),
        ("北\n\n京", ["北", "京"]),  # two paragraphs
        ("北\t京", ["北", "京"]),  # two cells
        ("한국 사람", ["한국", "사람"]),  # Korean has spaces
        ("e\u200bmail co\u00adop", ["email", "coop"]),
        ("می\u200cخواهم", ["ميخواهم", "مي", "خواهم"]),  # the yeh of a Persian keyboard as the Arabic one
    ],
)
def test_white_space_and_unseen_characters_in_words(text: str, terms: list[str]) -> None:
    assert Analysis("none").stems(text) == terms


def test_a_space_in_a_question_separates_words() -> None:
    assert Analysis("none").terms("北京 上海") == ["北京", "上海"]


def test_chinese_and_japanese_are_closed_up() -> None:
    assert close_up("我们 在北\u3000京。 去 a 上 海 한국 사람\n上\t海") == "我们在北京。去 a 上海 한국 사람\n上\t海"
    assert close_up("北\r\n京\n\n上 \n 海\nabc", lines=True) == "北京\n\n上海\nabc"


@pytest.mark.parametrize(
    ("texts", "question", "first"),
    [
        (["我们去北京大学学习", "上海的天气很好", "京都"], "北京大学", 0),
        (["東京都の天気", "大阪の食べ物", "京都の寺"], "京都の寺", 2),
        (["カタカナとひらがな", "漢字"], "ひらがな", 0),
        (["한국어 문서 검색", "일본어 문장"], "검색", 0),
        (["ภาษาไทยค้นหาได้", "อาหารอร่อย"], "ค้นหา", 0),
        (["ພາສາລາວ", "ອາຫານ"], "ອາຫານ", 1),
        (["ភាសាខ្មែរ", "អាហារ"], "អាហារ", 1),
        (["水", "火山"], "水", 0),
        (["Tokyo東京Tower", "other"], "東京", 0),
        (["हिन्दी में खोज", "दूसरा पाठ"], "हिन्दी", 0),
        (["ＡＢＣ全角", "other"], "abc", 0),
        (["我们昨天在北\n京的图书馆", "上海"], "北京", 0),
        (["an e\u200bmail", "other"], "email", 0),
        (["a data\u200bbase, a da\u00adta\u2060ba\u200dse", "data"], "database", 0),
        (["کتاب\u200cها", "other"], "کتاب", 0),
    ],
)
def test_scripts_without_spaces_are_found_by_words(tmp_path: Path, texts: list[str], question: str, first: int) -> None:
    assert found(tmp_path, texts, question)[0] == first


@pytest.mark.parametrize(
    ("question", "found_texts", "marked"),
    [
        ("犬", [0, 1], ["犬"]),
        ("駅", [2], ["駅"]),
        ("水", [3], ["水"]),
        ("本", [2, 0], ["本"]),
        ("犬が", [0], ["犬が"]),
        ("ねこ", [4, 5], ["ネコ"]),
        ("ネコ", [4, 5], ["ネコ"]),
        ("ﾈｺ", [4, 5], ["ネコ"]),
        ("물", [6], ["물"]),
    ],
)
def test_words_of_one_character_and_both_kana_are_found(
    tmp_path: Path, question: str, found_texts: list[int], marked: list[str]
) -> None:
    texts = [
        "日本の犬がいます。",
        "私の家にいるのは犬",
        "本屋は駅の前です。本もあります。",
        "我每天早上喝水。",
        "ネコがすきです。",
        "ねこがすきです。とてもすきですから、うちにいます。",
        "저는 물을 마셔요.",
    ]
    hits = found(tmp_path, texts, question)
    assert hits == found_texts
    assert [word["text"] for word in QuestionWords(Analysis("en"), question).mark(texts[hits[0]])][:1] == marked


@pytest.mark.parametrize(
    ("question", "marked"),
    [
        ("email", ["E-Mail"]),
        ("mail", ["Mail", "mail"]),
        ("e-mail", ["E-Mail", "e", "mail"]),
        ("wifi", ["Wi\u2011Fi"]),
        ("1000000", ["1,000,000", "1\u202f000\u202f000"]),
    ],
)
def test_words_that_are_also_written_as_one_are_marked(question: str, marked: list[str]) -> None:
    text = "An E-Mail, e mail, by Wi\u2011Fi to 1,000,000 or 1\u202f000\u202f000 people."
    assert [word["text"] for word in QuestionWords(Analysis("en"), question).mark(text)] == marked


def test_compounds_are_marked() -> None:
    text = "Käsekuchen mit Käse, neben der Kaserne und den Käsen"
    marked = [word["text"] for word in QuestionWords(Analysis("de"), "Käse").mark(text)]
    assert marked == ["Käsekuchen", "Käse", "Käsen"]
    assert Analysis("de").question_terms("der Käse im Ei") == {"kas": "kase", "ei": ""}
    assert Analysis("en").question_terms("the cheese") == {"chees": ""}


def test_a_pair_is_found_by_its_pair_alone(tmp_path: Path) -> None:
    assert found(tmp_path, ["東京", "京東", "京の東"], "東京") == [0]
    assert Analysis("en").terms("東京都") == ["東京", "京都"]
    assert Analysis("en").words("東京都a") == ["a", "東京", "京都"]
    assert characters("東京都a です") == ["東", "京", "都"]


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("en", "He was running", "runs"),
        ("de", "viele Häuser", "Haus"),
        ("german", "die Katzen", "Katze"),
        ("fr", "les chansons", "chanson"),
        ("es", "las bibliotecas", "biblioteca"),
        ("ru", "хорошие книги", "книга"),
        ("sv", "hundarna", "hund"),
        ("ar", "كِتَابٌ جديد", "كتاب"),
    ],
)
def test_endings_are_passed_over_in_the_language_of_the_index(
    tmp_path: Path, language: str, text: str, question: str
) -> None:
    assert found(tmp_path, [text, "42"], question, language) == [0]


def test_without_a_language_words_are_as_they_stand(tmp_path: Path) -> None:
    assert found(tmp_path, ["he was running the race", "runs"], "runs", "none") == [1]
    assert Analysis("none").terms("the of and") == ["the", "of", "and"]


def test_an_unknown_language_is_an_error_that_lists_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"language 'klingon' is unknown: use ar \(arabic\), da .*, or none"):
        Index.create(tmp_path / "x.index", dimensions=2, language="klingon")
    assert not (tmp_path / "x.index").exists()


@pytest.mark.parametrize("language", [*LANGUAGES, *LANGUAGES.values(), "none", "EN"])
def test_every_language_that_is_offered_analyses(language: str) -> None:
    assert Analysis(code(language)).terms("likewise 42")[1] == "42"


def test_stop_words_are_left_out_of_questions_and_stay_in_lengths() -> None:
    english = Analysis("en")
    assert english.terms("the cats and the dogs") == ["cat", "dog"]
    assert len(english.words("the cats and the dogs")) == 5
    assert english.terms("how does a vaccine work, and why don't you know?") == ["vaccin", "work", "know"]
    assert Analysis("de").terms("wie wirkt eine Impfung und warum") == ["wirkt", "impfung", "warum"]


@pytest.mark.parametrize("text", ["", "   ", "____", "…", "\x00", "🙂"])
def test_text_without_words_has_none(text: str) -> None:
    assert Analysis("en").words(text) == []


def test_what_is_no_word_is_cut_short() -> None:
    assert Analysis("en").words("x" * 5000) == ["x" * 64]
    assert max(map(len, Analysis("en").words("ab_" * 5000 + "é"))) == 64


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("en", "a café in Łódź", "cafe lodz"),
        ("en", "a cafe", "café"),
        ("fr", "les élèves de l'université", "universite"),
        ("fr", "les élèves", "eleve"),
        ("fr", "des œuvres", "oeuvre"),
        ("es", "la educación", "educacion"),
        ("pt", "a informação", "informacao"),
        ("it", "le università", "universita"),
        ("hu", "a házak", "haz"),
        ("de", "ein Café in München", "cafe"),
        ("de", "in München", "Muenchen"),
        ("sv", "en idé", "ide"),
        ("ru", "ёлка", "елка"),
        ("el", "η ψυχή", "ψυχη"),
        ("tr", "İstanbul", "istanbul"),
        ("tr", "IŞIK", "ışık"),
        ("tr", "ışıklar", "IŞIK"),
        ("tr", "IBM ve INTERNET", "ibm internet"),
        ("none", "YALIN İŞIQ", "yalın işıq"),  # Azeri
        ("en", "İŞIQ", "işıq"),
        ("ar", "كتابى", "كتابي"),
        ("en", "علی و کتاب", "علي كتاب"),  # Persian
        ("none", "علي و كتاب", "علی کتاب"),
    ],
)
def test_accents_are_passed_over_where_they_are_marks_on_a_letter(language: str, text: str, question: str) -> None:
    analysis = Analysis(language)
    assert set(analysis.terms(question)) <= set(analysis.stems(text))


@pytest.mark.parametrize(
    ("texts", "question", "first"),
    [
        (["an e-mail", "an email", "other"], "email", [1, 0]),
        (["an e-mail", "an email", "other"], "e-mail", [0, 1]),
        (["E-Mails"], "email", [0]),
        (["a wi-fi network", "wifi"], "WiFi", [0, 1]),
        (["wi\u2011fi"], "wifi", [0]),
        (["covid-19"], "covid19", [0]),
        (["1,000,000 people", "1000000", "1,000", "1 000 000"], "1000000", [1, 0, 3]),
        (["1.234.567 Einwohner", "other"], "1234567", [0]),
        (["12'345 Franken", "12’345"], "12345", [0, 1]),
        (["1\u202f234\u00a0€"], "1234", [0]),
        (["1234.50", "other"], "1,234.50", [0]),
        (["e-mail", "email and a long text of many words"], "mail", [0]),
        (["state-of-the-art"], "stateoftheart", []),
        (["12,3456", "1,23", "0.123"], "123456 123", [2]),
        (["10-20"], "1020", []),
    ],
)
def test_words_that_are_also_written_as_one_are_found(
    tmp_path: Path, texts: list[str], question: str, first: list[int]
) -> None:
    assert found(tmp_path, texts, question) == first


def test_what_is_found_as_one_word_does_not_count_in_the_length() -> None:
    analysis = Analysis("en")
    assert analysis.stems("an e-mail to 1,000 people") == ["an", "e", "mail", "to", "1", "000", "peopl"]
    assert analysis.joined("an e-mail to 1,000 people, and e-mails 东京-北京") == ["email", "1000"]
    assert Analysis("tr").joined("bir E-İmza") == ["eimza"]  # İ is longer in lower case
    assert analysis.terms("e-mail") == ["e", "mail", "email"]


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("es", "el año", "ano"),
        ("sv", "en får", "far"),
        ("da", "en dør", "dor"),
        ("fi", "hän", "han"),
        ("tr", "kış", "kis"),
        ("ru", "йод", "иод"),
        ("none", "café", "cafe"),
        ("en", "がく", "かく"),
    ],
)
def test_letters_of_their_own_stay_apart(language: str, text: str, question: str) -> None:
    analysis = Analysis(language)
    assert set(analysis.terms(question)).isdisjoint(analysis.stems(text))


def test_a_word_counts_twice_only_if_its_stem_needs_the_accent() -> None:
    french = Analysis("fr")
    assert french.stems("université") == ["univers", "universit"]
    assert french.stems("élève") == french.stems("eleve") == ["elev"]
    assert french.terms("université") == ["univers"]
    assert french.terms("universite") == ["universit"]


def test_ascii_text_is_analysed_as_before() -> None:
    text = "Running parse_json on HTTPServer v2.3.1, the cats' cafe"
    assert Analysis("en").stems(text) == [
        *("run", "parse_json", "on", "httpserver", "v2.3.1", "the", "cat", "cafe", "pars", "json"),
        *("http", "server", "v2", "3", "1", "2.3.1"),
    ]
    assert [str(Analysis(language)) for language in ("en", "fr", "ar", "none")] == ["3 en", "3 fr", "3 ar", "3 none"]


def test_a_word_index_of_an_earlier_version_is_rebuilt_and_scores_as_before(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2, language="en") as index:
        index.add([Document(name, text) for name, text in (("a", "a bread roll"), ("b", "a café"))], np.eye(2))
        writer_of(index).settle()
        before = snapshot_of(index).words("bread", 5).scores.tolist()
    with closing(sqlite3.connect(tmp_path / "x.index" / "catalog.db")) as catalog:
        catalog.execute("UPDATE word_index SET analysis = '0 en'")
        catalog.commit()
    with Index.open(tmp_path / "x.index") as index:
        assert snapshot_of(index).words("cafe", 5).matched == 1
        assert snapshot_of(index).words("bread", 5).scores.tolist() == before
        (note,) = index.check().notes
        assert note.startswith("the word index is of an earlier version and is not used")
        writer_of(index).settle()
        assert index.check().notes == ()
        assert snapshot_of(index).words("bread", 5).scores.tolist() == before


@pytest.mark.parametrize(
    ("language", "text", "question", "words"),
    [
        ("fr", "l'université de Paris", "universite", ["université"]),
        ("en", "the café in Paris", "cafe", ["café"]),
        ("es", "un año de educación", "ano educacion", ["educación"]),
    ],
)
def test_a_word_with_accents_is_marked_for_a_question_without_them(
    language: str, text: str, question: str, words: list[str]
) -> None:
    marked = QuestionWords(Analysis(language), question).mark(text)
    assert [word["text"] for word in marked] == words
