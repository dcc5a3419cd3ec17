"""likewise migrate: the verdict, the question before the switch, and what each way prints and ends with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import store_of

from indexer import Index
from indexer.errors import EndpointUnavailable
from search import Searcher, question_encoder

WORDS = (
    "bread",
    "dough",
    "oven",
    "moon",
    "tide",
    "sea",
    "star",
    "tea",
    "leaf",
    "cat",
    "dog",
    "river",
    "money",
    "night",
)


def sentence(random: np.random.Generator) -> str:
    return " ".join(random.choice(WORDS, 6)) + f" {random.integers(1000)}."


@pytest.fixture
def other(make_encoder: Callable[..., Any]) -> Any:
    """Another model, which takes half of each text for nothing."""
    model = make_encoder(name="other", weights="2", max_tokens=24)
    encode = model.encode

    def half(texts: Any, **options: Any) -> Any:
        return encode([text[: len(text) // 2] for text in texts], **options)

    model.encode = half
    return model


@pytest.fixture
def migrate(likewise: Callable[..., Any], encoder: Any, other: Any, register: Callable[..., None]) -> Any:
    """Runs a command line; the model `other` is the other one, and every other name the first."""
    register(named=lambda spec: other if spec.model == "other" else encoder)
    return likewise


@pytest.fixture
def folder(migrate: Callable[..., Any], tmp_path: Path, lines: Callable[..., str]) -> Path:
    random = np.random.default_rng(0)
    texts = [f"{sentence(random)} {sentence(random)} {sentence(random)}" for _ in range(80)]
    (tmp_path / "r.jsonl").write_text(lines(*({"id": f"d{i}", "text": text} for i, text in enumerate(texts))))
    (tmp_path / "q.jsonl").write_text(lines(*({"_id": f"q{i}", "text": texts[i]} for i in range(30))))
    qrels = "".join(f"q{i}\td{i}\t1\n" for i in range(30))
    (tmp_path / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}")
    assert migrate("index", tmp_path / "x.index", tmp_path / "r.jsonl").code == 0
    return tmp_path / "x.index"


def model_of(folder: Path) -> str:
    with Searcher(folder) as searcher:
        return str(searcher.recipe)


def test_with_judgments_there_and_back(migrate: Callable[..., Any], folder: Path, encoder: Any, other: Any) -> None:
    judged = ["--queries", folder.parent / "q.jsonl", "--qrels", folder.parent / "qrels.tsv"]
    with Searcher(folder) as searcher:
        passages = searcher.info().passages
        said = migrate("migrate", folder, "--model", "other", *judged, "--yes", "--json").succeeded()
        assert "MB of disk beside the old ones" in said.err
        found = said.json
        verdict = found["verdict"]
        assert (found["from"], found["to"], found["documents"], found["switched"]) == ("words", "other", 80, True)
        assert found["passages"] == searcher.info().passages == verdict["passages"]["new"] > passages
        assert verdict["passages"]["old"] == passages
        ndcg = verdict["ndcg@10"]
        assert ndcg["old"] > ndcg["new"] > 0
        assert ndcg["p"] < 0.05
        assert verdict["ndcg@10_hybrid"]["old"] > 0.9
        assert 0 < verdict["overlap@10"] < 1
        assert verdict["success@10"]["old"] > verdict["success@10"]["new"]
        assert (verdict["questions"], verdict["dimensions"]) == (30, {"old": 64, "new": 64})
        assert all(verdict[name][side] > 0 for name in ("question_ms", "passages_per_second", "bytes")
                   for side in ("old", "new"))  # fmt: skip
        assert searcher.recipe == other.recipe

        # The next run of the sources finds everything as it is.
        other.seen.clear()
        assert migrate("index", folder, folder.parent / "r.jsonl", "--json").json["unchanged"] == 80
        assert not any("bread" in text for text in other.seen)
        said = migrate("info", folder)
        assert "vectors of words; likewise migrate" in said.out
        info = migrate("info", folder, "--json").json
        assert (info["beside"]["place"], info["beside"]["model"], info["beside"]["documents"]) == (
            "previous",
            "words",
            80,
        )

        encoder.seen.clear()
        said = migrate("migrate", folder, "--back", "--json")
        said.reported(0, **{"from": "other", "to": "words", "switched": True})
        assert (said.json["documents"], said.json["passages"], encoder.seen) == (80, passages, [])
        assert searcher.recipe == encoder.recipe
        assert migrate("index", folder, folder.parent / "r.jsonl", "--json").json["unchanged"] == 80
    said = migrate("migrate", folder, "--drop").succeeded()
    assert "the vectors of other are removed" in said.out
    assert migrate("info", folder, "--json").json["beside"] is None
    assert migrate("migrate", folder, "--back").code == 2


@pytest.mark.slow
def test_without_yes_it_asks_on_a_terminal_and_elsewhere_keeps_the_work_and_ends_with_2(
    migrate: Any, folder: Path, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = migrate("migrate", folder, "--model", "other")
    assert said.code == 2
    assert "run it again with --yes" in said.err
    table = said.out.splitlines()
    assert table[0].split() == ["words", "other"]
    assert any(line.startswith("found in ten, of ") for line in table)
    assert "only judged questions can tell" in said.out
    assert "nDCG" not in said.out
    assert model_of(folder) == "words"
    assert "80 of 80 documents embedded with other" in migrate("info", folder).out
    other.seen.clear()
    monkeypatch.setattr("likewise.migration.commands.migrate._on_terminal", lambda: True)
    said = migrate("migrate", folder, "--model", "other")  # nobody types an answer
    assert (said.code, said.err.splitlines()[-1]) == (130, "likewise: interrupted; what was committed is kept")
    assert model_of(folder) == "words"
    for answer, model in ((False, "words"), (True, "other")):
        monkeypatch.setattr("click.confirm", lambda *_, answer=answer, **__: answer)
        said = migrate("migrate", folder, "--model", "other", "--json")
        said.reported(0, switched=answer)
        assert model_of(folder) == model
        assert "ndcg@10" not in said.json["verdict"]
    with Index.open(folder) as index:
        texts = {text for text in other.seen if text.count(".") > 2}
        assert not texts & {document.text for document in index}
        assert index.recipe == other.recipe


@pytest.mark.slow
def test_back_prints_how_many_documents_it_took_and_the_switch_what_is_lost_with_the_old_vectors(
    migrate: Any, folder: Path, lines: Callable[..., str]
) -> None:
    from dataclasses import replace

    with Index.open(folder) as index, store_of(index).writer() as writer:
        writer.change(lambda settings: replace(settings, words_bias=1.0))
    said = migrate("migrate", folder, "--model", "other", "--yes", "--json")
    assert any("the result of likewise tune" in note for note in said.json["notes"])
    records = json.loads((folder.parent / "r.jsonl").read_text().splitlines()[0])
    migrate("index", folder, "-", stdin=lines(records | {"text": "another text"}, {"id": "new", "text": "quite new"}))
    migrate("remove", folder, "d5")
    with Index.open(folder) as index:
        before = {document.uri: document for document in index}
    found = migrate("migrate", folder, "--back", "--json").json
    assert (found["followed"], found["removed"], found["left_out"], found["notes"]) == (2, 1, 0, [])
    with Index.open(folder) as index:
        assert {document.uri: document for document in index} == before
        assert index.check().ok
    migrate("remove", folder, "d6")
    said = migrate("migrate", folder, "--back")
    assert "0 changed documents brought up to date, and 1 removed" in said.out


def test_wrong_ways_to_call_it(migrate: Any, folder: Path) -> None:
    for arguments in (
        [],
        ["--back", "--drop"],
        ["--model", "other", "--back"],
        ["--back", "--yes"],
        ["--model", "other", "--queries", folder.parent / "q.jsonl"],
    ):
        assert migrate("migrate", folder, *arguments).code == 2
    assert "has this model already" in migrate("migrate", folder, "--model", "words").err
    own = folder.with_name("own.index")
    Index.create(own, dimensions=2).close()
    migrate("migrate", own, "--model", "other").failed(2, "your own vectors")


def test_an_empty_index_has_a_verdict_too(migrate: Any, tmp_path: Path, encoder: Any) -> None:
    Index.create(tmp_path / "empty.index", encoder).close()
    said = migrate("migrate", tmp_path / "empty.index", "--model", "other", "--yes", "--json")
    assert said.reported(0, documents=0).json["verdict"]["overlap@10"] is None
    assert model_of(tmp_path / "empty.index") == "other"


def test_a_model_that_is_gone_can_be_left(migrate: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be asked for the verdict, and an index that cannot be searched is the one that needs another model."""
    get_encoder = question_encoder.get_query_encoder

    def gone(recipe: Any, *rest: Any, **options: Any) -> Any:
        if recipe.model == "words":
            raise EndpointUnavailable("nothing listens there")
        return get_encoder(recipe, *rest, **options)

    monkeypatch.setattr(question_encoder, "get_query_encoder", gone)
    said = migrate("migrate", folder, "--model", "other", "--yes", "--json")
    said.reported(0, switched=True)
    assert model_of(folder) == "other"
    problem = "the models are not compared, because the old model cannot be used (nothing listens there)"
    assert problem in said.json["notes"]
    assert problem in said.err
    verdict = said.json["verdict"]
    assert (verdict["overlap@10"], verdict["success@10"], verdict["questions"]) == (None, None, 0)
    assert verdict["dimensions"] == {"old": 64, "new": 64}
    assert verdict["passages"]["new"] > verdict["passages"]["old"] == 80
