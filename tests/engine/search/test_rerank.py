"""Reranking: the order of the scorer, the depth, and errors of a scorer that returns something else."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import Document, Index
from indexer.encoders import cross_encoder
from indexer.errors import BadInput, ModelError
from search import Searcher

TEXTS = ["bread bread", "bread bread oven", "bread bread oven flour salt", "bread oven flour salt sourdough", "moon"]


@pytest.fixture
def searcher(in_memory: None, encoder: Any, tmp_path: Path) -> Searcher:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(f"d{number}", text, "Title") for number, text in enumerate(TEXTS)])
    return Searcher(tmp_path / "x.index")


def longest(query: str, texts: Sequence[str]) -> list[float]:
    return [float(len(text)) for text in texts]


def test_the_order_is_the_scorers_and_the_first_rank_is_told(searcher: Searcher) -> None:
    first = searcher.search("bread", 4)
    assert [hit.uri for hit in first] == ["d0", "d1", "d2", "d3"]
    hits = searcher.search("bread", 4, rerank=longest, rerank_depth=4)
    assert [hit.uri for hit in hits] == ["d3", "d2", "d1", "d0"]
    assert [hit.score for hit in hits] == [len(f"Title {text}") for text in reversed(TEXTS[:4])]
    assert [hit.cosine for hit in hits] == [hit.cosine for hit in reversed(first.hits)]
    assert hits[0].why is not None
    assert first[3].why is not None
    kept = {name: first[3].why[name] for name in ("cosine", "weights", "contributions")}
    before = {name: value for name, value in hits[0].why["first"].items() if name != "bm25"}
    assert before == {"score": first[3].score, "rank": 4, **kept}
    assert hits[0].why["contributions"] == {"reranker": hits[0].score}
    assert hits[0].why["words"] == first[3].why["words"]


def test_only_the_best_are_looked_at(searcher: Searcher) -> None:
    seen: list[Sequence[str]] = []

    def scorer(query: str, texts: Sequence[str]) -> list[float]:
        seen.append(texts)
        return longest(query, texts)

    hits = searcher.search("bread", 1, rerank=scorer, rerank_depth=3)
    assert ([hit.uri for hit in hits], len(seen[0])) == (["d2"], 3)
    hits = searcher.search("bread", 4, rerank=scorer, rerank_depth=2)
    assert len(hits) == len(seen[1]) == 4


@pytest.mark.parametrize(
    ("scores", "problem"), [([1.0], "1 scores for 5 texts"), ([float("nan")] * 5, "the score nan")]
)
def test_a_scorer_that_breaks_the_rules(searcher: Searcher, scores: list[float], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        searcher.search("bread", rerank=lambda query, texts: scores)


def test_scores_may_be_a_column_and_what_is_none_is_refused(searcher: Searcher) -> None:
    hits = searcher.search("bread", 4, rerank=lambda query, texts: np.array(longest(query, texts))[:, None])
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    torch = pytest.importorskip("torch")
    for kind in (iter, lambda scores: dict(enumerate(scores)).values(), lambda scores: torch.tensor(scores).bfloat16()):
        again = searcher.search("bread", 4, rerank=lambda query, texts, kind=kind: kind(longest(query, texts)))  # type: ignore[misc]
        assert [hit.uri for hit in again] == [hit.uri for hit in hits]
    for wrong in (None, ["a"] * 5, [[1.0], [1.0, 2.0]]):
        with pytest.raises(BadInput, match="the reranker did not return a list of numbers"):
            searcher.search("bread", rerank=lambda query, texts, wrong=wrong: wrong)  # type: ignore[misc]
    with pytest.raises(BadInput, match="a cross-encoder's name, or a callable"):
        searcher.search("bread", rerank=5)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def tiny_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The folder of a small random BERT with a scoring head of this many labels."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    def make(labels: int) -> Path:
        folder = tmp_path_factory.mktemp(f"cross{labels}")
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bread", "oven", "flour", "salt", "moon", "Title"]
        tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
        fast = transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
        )
        fast.save_pretrained(folder)
        torch.manual_seed(3)
        config = transformers.BertConfig(
            vocab_size=len(words),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
            num_labels=labels,
        )
        model = transformers.BertForSequenceClassification(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else None
        model.save_pretrained(folder)
        return folder

    return make


def test_a_cross_encoder_from_disk_scores_as_transformers_does(
    tiny_cross_encoder: Callable[[int], Path], searcher: Searcher
) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = str(tiny_cross_encoder(1))
    hits = searcher.search("bread", 5, rerank=folder)
    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModelForSequenceClassification.from_pretrained(folder).eval(),
    )
    for hit in hits:
        with torch.inference_mode():
            logits = model(**tokenizer("bread", f"Title {hit.text}", return_tensors="pt")).logits
        assert hit.score == pytest.approx(torch.sigmoid(logits).item(), abs=1e-5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_reranker_that_is_none(tiny_cross_encoder: Callable[[int], Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="gives 3 scores"):
        cross_encoder(str(tiny_cross_encoder(3)))
    with pytest.raises(ModelError, match="does not exist"):
        cross_encoder(str(tmp_path / "nothing"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"x")
    (tmp_path / "broken" / "config.json").write_text(
        json.dumps({"model_type": "bert", "architectures": ["BertForSequenceClassification"]})
    )
    with pytest.raises(ModelError, match="cannot be loaded as a cross-encoder"):
        cross_encoder(str(tmp_path / "broken"))


def test_a_model_without_a_head_for_pairs_is_no_reranker(searcher: Searcher) -> None:
    with pytest.raises(ModelError, match="no head that scores pairs: name one"):
        searcher.search("bread", rerank="all-MiniLM-L6-v2")
