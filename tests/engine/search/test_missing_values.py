"""The notes of a searcher about a filter with a value that no document has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from indexer import Document, FilterError, Index
from search import Searcher, UnknownField
from search.answering import UnknownFields

LANGUAGES = ["english", "english", "en", "german", "English"]


@pytest.fixture
def index(in_memory: None, request: pytest.FixtureRequest) -> Iterator[Index]:
    with Index.create(request.node.name, dimensions=2) as index:
        documents = [
            Document(
                f"d{number}",
                "text",
                path=f"/notes/{number}.md",
                metadata={"lang": lang, "year": 2020 + number, "day": f"2024-0{1 + number}-01", "draft": True},
            )
            for number, lang in enumerate(LANGUAGES)
        ]
        index.add(documents, vectors=np.ones((len(documents), 2)))
        yield index


@pytest.fixture
def searcher(index: Index, request: pytest.FixtureRequest) -> Iterator[Searcher]:
    with Searcher(request.node.name) as searcher:
        yield searcher


ENGLISH = 'no document has lang = "enlish"; near: "english" (2), "en" (1)'
NOTES = [
    ('lang = "enlish"', [ENGLISH]),
    ('lang in ("en", "enlish")', [ENGLISH]),
    ('lang != "enlish" and year >= 2020', [ENGLISH]),
    ('lang = "en" or lang = "enlish"', [ENGLISH]),
    ('not (lang = "enlish" or exists year)', [ENGLISH]),
    ('lang = "GERMAN"', ['no document has lang = "GERMAN"; near: "german" (1)']),
    ('lang = "xyz"', ['no document has lang = "xyz"; it has: "english" (2), "English" (1), "en" (1)']),
    ("year = 1999", ["no document has year = 1999; its numbers are from 2020 to 2024"]),
    ("day = 2023-12-01", ["no document has day = 2023-12-01; its days are from 2024-01-01 to 2024-05-01"]),
    ("draft = false", ["no document has draft = false; it has: true (5)"]),
    ('format = "pdf"', ['no document has format = "pdf"']),
    ('path = "/notes/9.md"', ['no document has path = "/notes/9.md"; near: "/notes/4.md" (1), "/notes/3.md" (1), "/']),
    ('path in ("1.md", "/notes/1.md")', []),
    ('not path in ("9.md", "/notes/1.md")', []),
    ('not uri in ("x", "y")', ['no document has uri = "x"']),
    ('lang = "en" and year = 2020', []),
    ('lang = "en"', []),
    ("year > 3000", []),
    ('under "/notse"', []),
    ('lang contains "ENGL"', ['no document has lang contains "ENGL"; there is "engl", and lang like "%ENGL%", which']),
    ('lang startswith "G"', ['no document has lang startswith "G"; there is "g", and lang like "G%", which ignores c']),
    ('lang endswith "N" or year = 2020', ['no document has lang endswith "N"; there is "n", and lang like "%N", whi']),
    ('lang contains "engl"', []),
    ('lang contains "xyz"', []),
    ("day = 2023", ["no document has day = 2023; its days are from 2024-01-01 to 2024-05-01"]),
    ("day >= 2024 and day < 2025-01", []),
    (
        'lang = "a" or lang = "b" or lang = "c" or lang = "d"',
        [f'no document has lang = "{letter}"; it has: "english" (2), "English" (1), "en" (1)' for letter in "abc"],
    ),
]


@pytest.mark.parametrize(("where", "expected"), NOTES, ids=[where for where, _ in NOTES])
def test_a_value_that_no_document_has_is_noted(searcher: Searcher, where: str, expected: list[str]) -> None:
    for _ in range(2):  # the second answer is from memory
        notes = searcher.search_vector([1.0, 1.0], where=where).notes
        assert searcher.filter_notes(where) == notes
        assert len(notes) == len(expected)
        for note, beginning in zip(notes, expected, strict=True):
            assert note.startswith(beginning)


def test_notes_follow_the_commits(index: Index, searcher: Searcher) -> None:
    assert searcher.similar("d0", where='lang = "enlish"').notes == (ENGLISH,)
    index.add([Document("d9", "text", metadata={"lang": "enlish"})], vectors=np.ones((1, 2)))
    assert searcher.similar("d0", where='lang = "enlish"').notes == ()


def test_a_searcher_that_allows_unknown_fields_notes_no_values(index: Index, request: pytest.FixtureRequest) -> None:
    with Searcher(request.node.name, unknown_fields="empty") as searcher:
        assert searcher.search_vector([1.0, 1.0], where='lang = "enlish" or nothing = 1').notes == ()
        assert searcher.filter_notes("nothing = 1") == searcher.filter_notes(None) == ()


def test_few_values_of_a_long_list_are_looked_up(searcher: Searcher) -> None:
    where = {"year": {"in": [*range(2020, 2024), *range(2_000)]}}
    assert len(searcher.search_vector([1.0, 1.0], where=where).notes) == 3


def test_an_empty_index_has_nothing_to_note(in_memory: None) -> None:
    with Index.create("empty-values", dimensions=2), Searcher("empty-values") as searcher:
        assert searcher.search_vector([1.0, 1.0], where='lang = "en"').notes == ()


@pytest.mark.usefixtures("in_memory")
def test_a_text_that_is_meant_as_a_date_is_noted() -> None:
    with Index.create("days", dimensions=2) as index:
        days = ["2024-05-01", "2024-06-01", "May 2024", "soon"]
        index.add([Document(day, "text", metadata={"day": day}) for day in days], vectors=np.ones((len(days), 2)))
        searcher = Searcher("days")
        for text in ("01.06.2024", "last week"):
            (said,) = searcher.search_vector([1, 0], where=f'day > "{text}"').notes
            assert said == f'day > "{text}" compares texts letter by letter: write a date as 2024-12-31 or -7d'
        for where in ("day >= 2024-05-15", 'day contains "May"', 'uri > "01.06.2024"'):
            assert searcher.search_vector([1, 0], where=where).notes == ()
        searcher.close()


@pytest.mark.parametrize("unknown_fields", ["error", "empty"])
@pytest.mark.usefixtures("in_memory")
def test_an_empty_filter_names_the_field_of_the_metadata(unknown_fields: UnknownFields) -> None:
    with Index.create(f"books-{unknown_fields}", dimensions=2) as index:
        metadata = {"format": "paperback", "modified": "2024-05-01", "title": 7}
        index.add([Document("a", "text", title="Bread", metadata=metadata)], vectors=np.ones((1, 2)))
        with Searcher(f"books-{unknown_fields}", unknown_fields=unknown_fields) as searcher:
            for where, name in (
                ('format = "paperback"', "format"),
                ('format contains "paper"', "format"),
                ("modified <= 2024", "modified"),
                ({"title": "7"}, "title"),
            ):
                note = f"{name} is a field of every document: the field of your metadata is metadata.{name}"
                assert note in searcher.search_vector([1, 0], where=where).notes
                assert note in searcher.filter_notes(where)
            for where in ('metadata.format = "x"', 'title = "Bread"', 'path = "x"'):
                assert not any("your metadata" in note for note in searcher.filter_notes(where))
            with pytest.raises(FilterError, match=r'"en"; the field of your metadata is metadata\.title$'):
                searcher.search_vector([1, 0], where="title = 7")
            words = searcher.search("bread", mode="words", where='title = "Bread" and not uri = "a"')
            assert any("metadata.title" in note for note in words.notes)
            words = searcher.search("lamp", mode="words", where='title = "Bread"')
            assert not any("your metadata" in note for note in words.notes)


@pytest.mark.usefixtures("in_memory")
def test_the_author_of_a_mail_is_in_its_field_from() -> None:
    with Index.create("mails", dimensions=2) as index:
        index.add([Document("m", "text", metadata={"from": "Ann Smith <ann@example.org>"})], vectors=np.ones((1, 2)))
        with pytest.raises(UnknownField, match=r'no document has a field "author"; near: from$'):
            Searcher("mails").search_vector([1, 0], where='author = "Ann"')
