"""Questions in another language than the model reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from indexer import Document, Index
from indexer.errors import in_shell
from indexer.languages.questions import other_language
from search import Query, Searcher, search_indexes


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("wie funktioniert die Impfung", "German"),
        ("comment la lumière est absorbée par les feuilles", "French"),
        ("Wann ziehen wir um?", "German"),
        ("Welches Prinzip wurde verletzt", "German"),
        ("quand déménageons-nous", "French"),
        ("quando ci trasferiamo", "Italian"),
        ("wanneer verhuizen we", "Dutch"),
        ("UN security council votes on Syria", None),
        ("13 children die in a fire", None),
        ("war in Vietnam", None),
        ("cómo se reproducen las plantas", "Spanish"),
        ("كيف تعمل اللقاحات", "Arabic"),
        ("月の満ち欠け", "Chinese or Japanese"),
        ("どうやってパンを焼くのですか", "Japanese"),
        ("빵을 어떻게 굽나요", "Korean"),
        ("ｈｏｗ ｔｏ ｂａｋｅ ｂｒｅａｄ", None),
        ("how does the immune system work", None),
        ("die casting of aluminium", None),
        ("la niña", None),
        ("error 0x80070057", None),
        ("", None),
    ],
)
def test_only_what_is_surely_another_language_is_named(question: str, language: str | None) -> None:
    assert other_language(question) == language


def test_every_answer_notes_a_question_that_the_model_does_not_read(tmp_path: Path, make_encoder: Any) -> None:
    made = []
    for name, model in (("a", "/models/all-MiniLM-L6-v2"), ("b", "/models/all-MiniLM-L6-v2"), ("c", "our-own")):
        made.append(tmp_path / f"{name}.index")
        with Index.create(made[-1], model=make_encoder(name=model)) as index:
            index.add(Document("bread", "Brot wird im Ofen gebacken. Bread is baked."))
    german = "wie wird das Brot gebacken"
    noted = "this question seems to be German, and all-MiniLM-L6-v2 reads English alone: "
    with Searcher(made[0]) as english, Searcher(made[2]) as other:
        (dense,) = english.search(german).notes
        assert (
            dense
            == f'{noted}the mode "hybrid" compares its words too, and multilingual-e5-small is a model that reads it'
        )
        assert in_shell(dense) == f"{dense} (--mode hybrid; likewise migrate INDEX --model multilingual-e5-small)"
        (hybrid,) = english.search(german, mode="hybrid").notes
        assert hybrid == f"{noted}multilingual-e5-small is a model that reads it"
        assert in_shell(hybrid).endswith(" (likewise migrate INDEX --model multilingual-e5-small)")
        many = english.search_many([german, "how is bread baked"])
        assert [hits.notes for hits in many] == [(dense,), ()]
        assert english.search(german, mode="words").notes == ()
        assert english.search_vector(english.vectors("bread")[0]).notes == ()
        assert other.search(german).notes == ()
        assert search_indexes([made[0], made[1]], Query(german)).notes == (dense,)
        assert search_indexes([made[0], made[2]], Query(german)).notes == (f"a: {dense}",)
