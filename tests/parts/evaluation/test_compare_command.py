"""Comparisons against direct computation, that a shared pass is one, and the command.

The models are tiny BERTs of random weights with a tokenizer trained on a few sentences.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from indexer import Document
from indexer.encoders import load_encoder
from indexer.errors import BadInput, ModelError
from likewise.evaluation import contenders
from likewise.evaluation.collection import read_documents
from likewise.evaluation.compare import compare
from likewise.evaluation.measures import Qrels
from likewise.evaluation.sts import JudgedPairs, read_sts
from likewise.evaluation.tasks import Retrieval
from likewise.speed import native

WORDS = ["bank", "river", "dogs", "snow", "stars", "explode", "vaccines", "flute", "money", "system", "house", "short"]


def _sentences(count: int, length: int = 6) -> list[str]:
    random = np.random.default_rng(0)
    found: dict[str, None] = {}
    while len(found) < count:
        found[" ".join(random.choice(WORDS, random.integers(3, length)))] = None
    return list(found)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a BERT of 3 layers and 16 dimensions."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("bert")
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(1)
    network = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=12,
        )
    )
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.4) if parameter.dim() > 1 else None
    network.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def sts() -> JudgedPairs:
    texts = _sentences(240)
    scores = np.round(np.random.default_rng(3).random(120) * 5, 1)
    return JudgedPairs("made", tuple(texts[:120]), tuple(texts[120:]), scores)


@pytest.fixture(scope="session")
def retrieval() -> Retrieval:
    texts = _sentences(150)
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    queries = {f"q{number}": " ".join(text.split()[:3]) for number, text in enumerate(texts[:20])}
    return Retrieval(documents, queries, Qrels({f"q{number}": {f"d{number}": 1} for number in range(20)}))


def test_spearman_is_scipys_on_direct_cosines(model: str, sts: JudgedPairs) -> None:
    recipes = [f"{model}:mean", f"{model}:cls@-2", f"{model}:mean@1..3+concat"]
    rows = compare(recipes, [sts]).rows
    for recipe, row in zip(recipes, rows, strict=True):
        encoder = load_encoder(recipe)
        cosines = (encoder.encode(sts.first) * encoder.encode(sts.second)).sum(1)
        estimate = row.measures["STS made"]
        assert estimate.value == pytest.approx(100 * scipy.stats.spearmanr(cosines, sts.scores).statistic, abs=0.3)
        assert estimate.low < estimate.value < estimate.high
        low, high = sts.scores.min(), sts.scores.max()
        related = cosines[sts.scores >= low + 0.8 * (high - low)]
        assert np.allclose(row.cosines.related, related, atol=0.01)
        above = row.cosines.related[:, None] > row.cosines.random
        assert row.cosines.separation == pytest.approx(above.mean(), abs=1e-3)
        assert row.speed > 0
    assert [row.dimensions for row in rows] == [16, 16, 48]
    assert [row.bytes for row in rows] == [32, 32, 96]


def test_retrieval_is_that_of_all_cosines(model: str, retrieval: Retrieval, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "BATCH_TEXTS", 32)  # several batches
    (row,) = compare([f"{model}:mean@1"], retrieval=retrieval).rows
    encoder = load_encoder(f"{model}:mean@1")
    questions = encoder.encode(list(retrieval.queries.values()), role="query")
    order = np.argsort(-questions @ encoder.encode(retrieval.texts).T, axis=1, kind="stable")
    ranks = np.array([list(own).index(number) + 1 for number, own in enumerate(order)])
    expected = {
        "nDCG@10": np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0).mean(),
        "recall@100": (ranks <= 100).mean(),
        "MRR@10": np.where(ranks <= 10, 1 / ranks, 0).mean(),
    }
    assert {name: each.value for name, each in row.measures.items()} == pytest.approx(expected)
    assert len(row.cosines.related) == 20
    assert len(row.cosines.random) > 500


def test_a_recipe_against_itself_has_p_one(model: str, sts: JudgedPairs, retrieval: Retrieval) -> None:
    rows = compare([f"{model}:mean", f"{model}:mean", f"{model}:cls@0"], [sts], retrieval).rows
    assert [each.p for row in rows[:2] for each in row.measures.values()] == [1.0] * 8
    assert rows[0].measures == rows[1].measures


def test_recipes_of_one_model_share_one_forward_pass(
    model: str, sts: JudgedPairs, retrieval: Retrieval, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[int] = []
    states = native.Native.states

    def counting(self: native.Native, batch: Any, wanted: Sequence[int]) -> Any:
        passed.append(sum(count for count, _ in batch.runs))
        return states(self, batch, wanted)

    monkeypatch.setattr(native.Native, "states", counting)
    monkeypatch.setattr("likewise.evaluation.compare.measure_speeds", lambda encoders, texts: [1.0] * len(encoders))
    recipes = [f"{model}:{rest}" for rest in ("mean", "cls@-2", "max@0,3+concat", "mean@2", "mean@2+8")]
    compare(recipes, [sts], retrieval)
    assert sum(passed) == 240 + 150 + 20  # sentences, documents, questions: each once


def test_long_texts_are_cut_and_counted(model: str, sts: JudgedPairs) -> None:
    long = JudgedPairs("long", (*sts.first, "bank " * 30), (*sts.second, "river " * 11), np.append(sts.scores, 1.0))
    found = compare([f"{model}:mean"], [long])
    assert found.rows[0].cut == 2
    assert any("2 of 242 texts were cut" in note for note in found.notes)


def test_what_cannot_be_compared(model: str, sts: JudgedPairs) -> None:
    with pytest.raises(BadInput, match="nothing to compare"):
        compare([f"{model}:mean"])
    with pytest.raises(BadInput, match="'made'"):
        compare([f"{model}:mean"], [sts, sts])
    with pytest.raises(BadInput, match="no question has a relevant document"):
        compare([f"{model}:mean"], retrieval=Retrieval([Document("a", "bank")], {"q": "bank"}, Qrels({"q": {"a": 0}})))
    with pytest.raises(ModelError, match="'whiten' is not one of mean, sum, concat or a number of dimensions"):
        compare([f"{model}:mean+whiten"], [sts])


@pytest.fixture
def files(tmp_path: Path, sts: JudgedPairs, retrieval: Retrieval) -> Path:
    rows = zip(sts.scores, sts.first, sts.second, strict=True)
    table = "score\tsentence1\tsentence2\n" + "".join(f"{s}\t{a}\t{b}\n" for s, a, b in rows)
    (tmp_path / "made.tsv").write_text(table)
    lines = [json.dumps({"_id": each.uri, "title": "", "text": each.text}) for each in retrieval.documents]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    lines = [json.dumps({"_id": query, "text": text}) for query, text in retrieval.queries.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    judged = [f"{query}\t{uri}\t1" for query, grades in retrieval.qrels.grades.items() for uri in grades]
    (tmp_path / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged, "q0\tabsent\t1"]))
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command in this process, with the real loader."""
    from likewise.shell import main

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["compare", *map(str, arguments)])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call


def test_the_command(run: Callable[..., tuple[int, str, str]], files: Path, model: str) -> None:
    judged = ["--corpus", files / "corpus.jsonl", "--queries", files / "queries.jsonl", "--qrels", files / "qrels.tsv"]
    two = ["--recipe", f"{model}:mean", "--recipe", f"{model}:mean@-2+8", "--sts", files / "made.tsv"]
    code, out, err = run(*two, *judged, "--plot", files / "p.png", "--json")
    assert code == 0
    assert "1 judged document not in" in err
    found = json.loads(out)
    assert [row["recipe"] for row in found["recipes"]] == [f"{model}:mean", f"{model}:mean@-2+8"]
    assert set(found["recipes"][0]) >= {"measures", "dimensions", "texts_per_second", "bytes", "cut", "cosines"}
    assert set(found["recipes"][1]["measures"]) == {"STS made", "nDCG@10", "recall@100", "MRR@10"}
    assert (files / "p.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = run(*two)
    assert out.splitlines()[0].split() == ["recipe", "STS", "made", "dimensions", "texts/s", "bytes"]
    assert " p=" in out.splitlines()[3]
    assert " p=" not in out.splitlines()[1]
    corpus = (files / "corpus.jsonl").read_text()
    (files / "twice.jsonl").write_text(f"{corpus.rstrip()}\n{corpus.splitlines()[0]}\n")
    code, out, err = run(*two[:2], "--corpus", files / "twice.jsonl", *judged[2:], "--json")
    assert code == 0
    assert "1 id came more than once" in err
    once, again = (each["recipes"][0]["measures"]["nDCG@10"]["value"] for each in (found, json.loads(out)))
    assert again == pytest.approx(once)


def test_the_files_of_a_folder_are_a_corpus(here: Path) -> None:
    for language, text in (("de", "# Brot\n\nfrisch halten"), ("fr", "# Pain\n\nle garder frais")):
        (here / "notes" / language).mkdir(parents=True)
        (here / "notes" / language / "bread.md").write_text(text)
    (here / "notes" / "more.jsonl").write_text('{"_id": "loaf", "text": "bread"}')
    documents = read_documents(Path("notes"))
    assert {document.uri: document.title for document in documents} == {
        "de/bread.md": "Brot",
        "fr/bread.md": "Pain",
        "loaf": "",
    }


@pytest.mark.parametrize(
    "arguments",
    [["compare", "--recipe", "x", "--sts", "x.tsv", "--plot", "p.png"], ["embed", "a b", "--histogram", "p.png"]],
    ids=["compare", "embed"],
)
def test_pictures_need_an_extra(
    arguments: list[str], here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from likewise.shell import main

    (here / "x.tsv").write_text("5\ta\tb\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "needs matplotlib, which is not installed: pip install 'likewise[map]'" in capsys.readouterr().err


def test_wrong_usage_of_the_command(run: Callable[..., tuple[int, str, str]], files: Path, model: str) -> None:
    for arguments, complaint in (
        (["--recipe", model], "give --sts FILE, or"),
        (["--recipe", model, "--corpus", files / "corpus.jsonl"], "go together"),
        (["--sts", files / "made.tsv"], "Missing option '--recipe'"),
        (["--recipe", f"{model}:median", "--sts", files / "made.tsv"], "'median' is not a pooling"),
        (["--recipe", f"{model}:mean@9", "--sts", files / "made.tsv"], "has no layer 9"),
        (["--recipe", model, "--sts", files / "made.tsv", "--plot", files / "p.xyz"], "is not a picture"),
    ):
        code, _, err = run(*arguments)
        assert code == 2
        assert complaint in err


@pytest.mark.long
def test_the_default_model_reaches_its_published_correlation() -> None:
    """STS-B test: Spearman 82.03 (sentence-transformers' table of models)."""
    if "LIKEWISE_EVAL_DATA" not in os.environ:
        pytest.skip("LIKEWISE_EVAL_DATA is not set")
    judged = read_sts(Path(os.environ["LIKEWISE_EVAL_DATA"]) / "data/sts/stsb-test.tsv")
    (row,) = compare(["all-MiniLM-L6-v2"], [judged]).rows
    assert row.measures["STS stsb-test"].value == pytest.approx(82.03, abs=0.1)
