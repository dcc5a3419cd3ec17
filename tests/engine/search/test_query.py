"""A wrong question is refused when it is made; equal questions are equal in every notation."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from indexer import BadInput, FilterError, FilterSyntaxError
from indexer.filters.tree import And, Compare
from search import Query
from search.asker import Asker
from search.query.query import SENT_MEMBERS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": ""}, "the question is empty"),
        ({"text": " \n"}, "the question is empty"),
        ({"text": None}, "not a string but NoneType"),
        ({"text": "a\ud800"}, "not valid Unicode at character 1"),
        ({"text": "a", "k": 0}, "k is 0: ask for a whole number of hits"),
        ({"text": "a", "k": True}, "k is True"),
        ({"text": "a", "k": 2.0}, r"k is 2\.0"),
        ({"text": "a", "rerank_depth": -1}, "rerank_depth is -1"),
        ({"text": "a", "mode": "fuzzy"}, "mode 'fuzzy' is not one of dense, words, hybrid"),
        ({"text": "a", "min_score": "high"}, "min_score is 'high'"),
        ({"text": "a", "min_score": float("nan")}, "min_score is nan"),
        ({"text": "a", "min_score": np.float32("nan")}, "min_score is nan"),
        ({"text": "a", "passages": "yes"}, "passages is 'yes': give True or False"),
        ({"text": "a", "exact": None}, "exact is None"),
        ({"text": "a", "rerank": 5}, "rerank is 5"),
        ({"text": "a", "vector": [1.0], "mode": "words"}, "does not use a vector"),
        ({"text": "", "vector": [1.0], "mode": "hybrid"}, "the question is empty"),
        ({"vector": [1.0], "rerank": "a-model"}, "a reranker needs the text of the question"),
        ({"vector": [[1.0]]}, r"shape \(1, 1\)"),
        ({"vector": [0.0, 0.0]}, "only zeros"),
        ({"vector": [float("inf"), 0.0]}, "not finite"),
        ({"vector": ["a"]}, "float32 or float16"),
    ],
)
def test_what_cannot_be_asked_is_refused_when_the_question_is_made(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Query(**arguments)


def test_a_score_may_be_any_number() -> None:
    assert Query("a", min_score=10**400).min_score == 10**400


def test_a_filter_is_read_when_the_question_is_made() -> None:
    with pytest.raises(FilterSyntaxError, match="expected a value"):
        Query("a", where="year >=")
    with pytest.raises(FilterError, match="not a comparison"):
        Query("a", where={"year": {"~": 1}})
    tree = And((Compare("year", ">=", 2020), Compare("lang", "=", "en")))
    for where in ('year >= 2020 and lang = "en"', {"year": {">=": 2020}, "lang": "en"}, tree):
        assert Query("a", where=where).condition == tree


def test_a_question_is_a_value() -> None:
    assert Query("a", k=3) == Query("a", k=np.int64(3))
    assert Query("a") != Query("b")
    assert Query(vector=[1, 0]) == Query(vector=np.array([2.0, 0.0]))  # of length 1 both
    assert Query(vector=[1, 0]) != Query(vector=[0, 1])
    assert len({Query("a", where="x = 1"), Query("a", where="x = 1"), Query("a")}) == 2
    with pytest.raises(FrozenInstanceError):
        Query("a").k = 2  # type: ignore[misc]
    row = Query(vector=[3.0, 4.0]).row
    assert row is not None
    assert row.tolist() == pytest.approx([0.6, 0.8])
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1


def test_every_member_of_a_question_is_sent_to_a_service_or_has_a_form_of_its_own() -> None:
    own = {"text", "where", "mode", "rerank", "rerank_depth"}
    assert {each.name for each in fields(Query) if each.init} == {*SENT_MEMBERS, *own}


def test_a_search_asks_for_each_of_its_options_by_its_name() -> None:
    options: dict[str, Any] = {
        **{
            "k": 3,
            "where": "a = 1",
            "mode": "hybrid",
            "passages": True,
            "min_score": 0.5,
            "exact": 1,
            "explain": False,
        },
        **{"rerank": "scorer", "rerank_depth": 7, "vector": [1.0, 0.0], "like": ["b"], "unlike": ["c"], "fold": True},
        **{"newer": "90d", "literal": False},
    }
    asked = list[Query]()
    Asker.search(SimpleNamespace(answer=asked.append), "lamps", **options)  # type: ignore[arg-type]
    expected = Query("lamps", **options)
    assert options.keys() == {member.name for member in fields(Query) if member.init} - {"text"}
    assert [getattr(asked[0], name) for name in options] == [getattr(expected, name) for name in options]
