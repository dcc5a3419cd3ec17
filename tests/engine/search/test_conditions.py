"""The conditions in a question: how they are read, and that all ways to ask obey them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer import Document, Index
from indexer.errors import BadInput
from indexer.stores.words.exact import exact_words, places
from search import Query, Searcher
from search.query.conditions import read_conditions

NONE: list[str] = []


@pytest.mark.parametrize(
    ("question", "asked", "conditions"),
    [
        ('"vitamin d" -cancer', "", ['"vitamin d"', "-cancer"]),
        ('how does "vitamin d" work', "how does work", ['"vitamin d"']),
        ("how +vaccines work -cats", "how work", ["+vaccines", "-cats"]),
        ('trials of drugs -"vitamin  d"', "trials of drugs", ['-"vitamin d"']),
        ('trials -"vitamin d" of drugs', 'trials -"vitamin d" of drugs', NONE),
        ("what does tar -xzf do", "what does tar -xzf do", NONE),
        ("what does  tar -xzf do -rm", "what does tar -xzf do", ["-rm"]),
        ('is it -40 "in siberia" now +frost -snow ?', "is it -40 now ?", ['"in siberia"', "+frost", "-snow"]),
        ("-40 °C +frost", "-40 °C", ["+frost"]),
        ("frost -40 ℃", "frost -40 ℃", NONE),
        ("a - b -c -- ...", "a - b -- ...", ["-c"]),
        ("tides — -moon —", "tides — —", ["-moon"]),
        ("tides -moon —sea", "tides -moon —sea", NONE),
        ("tides -moon --force", "tides -moon --force", NONE),
        ("东京的天气 -京都", "东京的天气", ["-京都"]),
        ("东京 -京都 的天气", "东京 -京都 的天气", NONE),
        ('+"vitamin d"', "", ['"vitamin d"']),
        ("“exact phrase” now", "now", ['"exact phrase"']),
        ("„genau das“ und «ceci»", "und", ['"genau das"', '"ceci"']),
        ("+state-of-the-art models", "models", ["+state-of-the-art"]),
        ('"a" "A" -a', "", ['"a"', '"A"', "-a"]),
        ('"a" "a"', "", ['"a"']),
        ('say "hello', 'say "hello', NONE),
        ('a 5" pipe', 'a 5" pipe', NONE),
        ('5" pipes of "red copper" and 6"', '5" pipes of and 6"', ['"red copper"']),
        ("covid-19 and 1+1", "covid-19 and 1+1", NONE),
        ("- cats + dogs", "- cats + dogs", NONE),
        ("--flag -- x", "--flag -- x", NONE),
        ("(-cats)", "(-cats)", NONE),
        ('"" and "..."', '"" and "..."', NONE),
        ("  two  spaces ", "  two  spaces ", NONE),
        ("-cats, dogs", "-cats, dogs", NONE),
        ("-cats, -dogs", "", ["-cats,", "-dogs"]),
        ("我要“东京”的 -北京", "我要 的", ['"东京"', "-北京"]),
        ("'single quotes' stay", "'single quotes' stay", NONE),
        ('"vitamin d", -cancer', "", ['"vitamin d"', "-cancer"]),
        ('-"open cats', '-"open cats', NONE),
    ],
)
def test_these_conditions_are_read(question: str, asked: str, conditions: list[str]) -> None:
    rest, found = read_conditions(question)
    assert (rest, [condition.text for condition in found]) == (asked, conditions)
    assert [condition.excluded for condition in found] == [text.startswith("-") for text in conditions]
    query = Query(question, literal=False)
    assert (query.asked, query.conditions, query.text) == (rest, found, question)
    assert (Query(question).asked, Query(question).conditions) == (question, ())


WORD = st.sampled_from(["a", "b2", "cafe", "café", "東京", "京", "ไทย", "x_y", "d'or", "v1.2", "to"])
PART = st.one_of(
    WORD.map(lambda word: (word, None)),
    WORD.map(lambda word: (f"+{word}", (word, False))),
    WORD.map(lambda word: (f"-{word}", (word, True))),
    st.lists(WORD, min_size=1, max_size=3).map(lambda words: (f'"{" ".join(words)}"', (" ".join(words), False))),
    st.lists(WORD, min_size=1, max_size=3).map(lambda words: (f"-“{' - '.join(words)}”", (" ".join(words), True))),
)


@given(st.lists(PART, max_size=6))
def test_every_form_is_read_in_any_order(parts: list[tuple[str, tuple[str, bool] | None]]) -> None:
    asked, found = read_conditions(" ".join(text for text, _ in parts))
    plain = [place for place, (_, condition) in enumerate(parts) if condition is None]
    is_text = [  # a dash before the last plain word excludes nothing
        condition is None or (condition[1] and place < max(plain, default=0))
        for place, (_, condition) in enumerate(parts)
    ]
    assert asked == " ".join(text for (text, _), own in zip(parts, is_text, strict=True) if own)
    expected = {
        (tuple(exact_words(part[0])), part[1])
        for (_, part), own in zip(parts, is_text, strict=True)
        if part is not None and not own
    }
    assert {(condition.words, condition.excluded) for condition in found} == expected


@given(st.text())
def test_reading_ends_with_text_that_has_no_conditions(question: str) -> None:
    asked, found = read_conditions(question)
    assert found or asked == question
    assert all(condition.words for condition in found)
    assert asked == question or len(asked) < len(question)


@given(st.text(), st.text(), st.booleans())
def test_words_are_those_of_upper_case_and_other_white_space(first: str, second: str, upper: bool) -> None:
    words = exact_words(f"{first} {second}")
    assert words == exact_words(f"{first}\n\t{second}")
    assert exact_words(" ".join(words)) == words or max(map(len, words)) == 64
    if upper and first.isascii():
        assert exact_words(first.upper()) == exact_words(first)


def test_places_are_offsets_in_the_text_itself() -> None:
    text = "A vita\u00admin  “D” or VITAMIN-d; 東京都 ﬁne"
    assert [text[start:end] for start, end in places(text, ["vitamin", "d"])] == ["vita\u00admin  “D", "VITAMIN-d"]
    assert [text[start:end] for start, end in places(text, ["京", "都", "fine"])] == ["京都 ﬁne"]
    assert places(text, ["d", "vitamin"]) == []


def test_only_conditions_are_ranked_by_words() -> None:
    assert Query('"a" -b', literal=False).ranked_by == "words"
    assert Query('"a" -b', mode="hybrid", literal=False).needs_vector is False
    assert Query('"a" c', literal=False).ranked_by == "dense"
    assert Query('"a"', vector=[1.0, 0.0], literal=False).ranked_by == "dense"
    assert Query('"a b" c -d', literal=False).words == "c a b"
    with pytest.raises(BadInput, match="literal is 'no': give True or False"):
        Query("a", literal="no")  # type: ignore[arg-type]


@pytest.fixture
def searcher(tmp_path: Path, encoder: Any) -> Searcher:
    texts = {
        "bones": "Vitamin D and the bones. A lack of vitamin D makes bones soft.",
        "cancer": "Vitamin D and cancer: what the trials found.",
        "bread": "The café sells bread.",
    }
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(uri, text) for uri, text in texts.items()])
    return Searcher(tmp_path / "x.index")


def test_a_note_names_what_was_read(searcher: Searcher) -> None:
    def notes(question: str, **options: Any) -> list[str]:
        return list(searcher.search(question, literal=False, **options).notes)

    assert notes("bones of a cat") == []
    assert notes('bones -cancer "vitamin d"') == ['read as conditions: -cancer, "vitamin d"']
    assert searcher.search("bones -cancer").notes == ()
    assert notes("trials +cafe -the", passages=True) == ["read as conditions: +cafe, -the"]
    of_filter, read = notes("+found x", where='uri = "nobody"')
    assert of_filter.startswith('no document has uri = "nobody"')
    assert read == "read as conditions: +found"


def test_why_says_where_each_condition_is_met(searcher: Searcher) -> None:
    (hit,) = searcher.search('soft -cancer "vitamin d"', literal=False)
    assert hit.why is not None
    assert hit.why["conditions"] == [
        {"text": "-cancer", "excluded": True, "places": []},
        {
            "text": '"vitamin d"',
            "excluded": False,
            "places": [{"text": "Vitamin D", "start": 0, "end": 9}, {"text": "vitamin D", "start": 35, "end": 44}],
        },
    ]
    assert [word["text"] for word in hit.why["words"]] == ["Vitamin", "D", "vitamin", "D", "soft"]
    (hit,) = searcher.search("soft bones", 1)
    assert hit.why is not None
    assert "conditions" not in hit.why


def test_without_a_question_hits_are_ranked_by_words(searcher: Searcher) -> None:
    hits = searcher.search('"vitamin d"', mode="hybrid", literal=False, explain=True)
    assert ([hit.uri for hit in hits], hits.mode, hits.matched) == (["bones", "cancer"], "words", 2)
    of_words = searcher.search("vitamin d", mode="words")
    assert [hit.score for hit in hits] == [hit.score for hit in of_words]
    assert hits.query == '"vitamin d"'
    hits = searcher.search("-vitamin", literal=False)
    assert [(hit.uri, hit.score) for hit in hits] == [("bread", 0.0)]
    assert [hit.uri for hit in searcher.search("-bread", literal=False, explain=True)] == ["bones", "cancer"]


def test_a_reranker_reads_the_words_without_signs(searcher: Searcher) -> None:
    read: list[str] = []

    def scorer(question: str, texts: list[str]) -> list[float]:
        read.append(question)
        return [float("trials" in text) for text in texts]

    hits = searcher.search('found "vitamin d" -bread', rerank=scorer, literal=False)
    assert ([hit.uri for hit in hits], read) == (["cancer", "bones"], ["found vitamin d"])


def test_many_questions_are_asked_as_they_stand(searcher: Searcher) -> None:
    questions = ['"vitamin d" -cancer', "+bread -trials", "bones -vitamin"]
    for question, hits in zip(questions, searcher.search_many(questions), strict=True):
        assert hits == searcher.search(question, 100)
        assert (hits.matched, hits.notes) == (3, ())
    assert searcher.search(questions[0], literal=False).matched == 1


def test_a_question_has_a_limited_number_of_conditions() -> None:
    Query(" ".join(f"-w{number}" for number in range(64)), literal=False)
    many = " ".join(f"+w{number}" for number in range(1400))
    with pytest.raises(
        BadInput, match="has 1,400 conditions, and 64 is the limit: give fewer, or ask for the text as it"
    ):
        Query(many, literal=False)
    assert Query(many).conditions == ()


@pytest.mark.parametrize("more", [{}, {"like": ["a"]}, {"vector": [1.0]}])
def test_a_reranker_is_refused_where_all_words_are_excluded(more: dict[str, Any]) -> None:
    """It was asked to score passages for an empty question."""
    with pytest.raises(BadInput, match="a reranker needs the text of the question"):
        Query("-tea", literal=False, rerank=lambda question, texts: [0.0] * len(texts), **more)
