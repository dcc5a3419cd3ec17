"""The contract of every encoder, tested with each kind: torch, OpenVINO, sentence-transformers as a whole,
static.

The models are tiny and random; each is compared with what sentence-transformers makes of the same folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding, Transformer
from tokenizers import Tokenizer

from indexer.encoders import Encoder, Role, load_encoder
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.static.encoder import StaticEncoder
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.fallback import SentenceTransformerEncoder
from indexer.errors import BadInput, NothingKnown, TextTooLong

PROMPT = "bank: "
LIMIT = 40
TEXTS = [
    "After stealing money from the bank vault, the bank robber was seen fishing on the river bank.",
    "short",
    "A man is playing a large flute.",
    "Vaccines train the immune system.",
    "Two dogs run through the snow while a third one watches them.",
    "the river",
    "Why do some stars explode?",
]
ROLES: tuple[Role, ...] = "document", "query"


@dataclass(frozen=True)
class Kind:
    """One kind of encoder and how exact it is.

    Attributes:
        settings: of `load_encoder`.
        distance: 1 - cosine to the reference library's vectors, at most.
        apart: 1 - cosine between two batches' vectors of one text, at most.
    """

    made: type
    model: str
    settings: dict[str, Any]
    distance: float
    apart: float


KINDS = {
    "torch float32": Kind(TorchEncoder, "bert", {"precision": "float32"}, 1e-5, 1e-5),
    "torch bfloat16": Kind(TorchEncoder, "bert", {"precision": "bfloat16"}, 5e-3, 1e-3),
    "openvino": Kind(CompiledEncoder, "bert", {"precision": "float32", "runtime": "openvino"}, 1e-5, 1e-5),
    "fallback": Kind(SentenceTransformerEncoder, "lower case", {}, 1e-5, 1e-5),
    "static": Kind(StaticEncoder, "static", {"max_tokens": LIMIT}, 1e-5, 1e-5),
    "static, compiled": Kind(CompiledEncoder, "static", {"runtime": "openvino", "max_tokens": LIMIT}, 1e-5, 1e-5),
    "static, published": Kind(StaticEncoder, "potion", {"max_tokens": LIMIT}, 1e-5, 1e-5),
}

PARAMETERS = [
    pytest.param(name, marks=[pytest.mark.needs("speed")] if kind.made is CompiledEncoder else [])
    for name, kind in KINDS.items()
]


@dataclass(frozen=True)
class Subject:
    """An encoder, and the reference library on the same folder."""

    kind: Kind
    encoder: Encoder
    reference: Any

    @property
    def static(self) -> bool:
        return self.kind.model in ("static", "potion")

    def a_text(self, tokens: int) -> str:
        """A text of so many tokens of its own; a published bag of words may know nothing of "a" alone."""
        text = "river" + " a" * (tokens - len(self.encoder.offsets(["river"])[0]))
        assert len(self.encoder.offsets([text])[0]) == tokens
        return text

    def room(self, role: Role) -> int:
        return self.encoder.max_tokens - self.encoder.overhead(role)

    def same(self, found: np.ndarray, wanted: np.ndarray) -> None:
        assert found.shape == wanted.shape
        assert (1 - (found * wanted).sum(axis=1)).max() <= self.kind.apart


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a model by name, as sentence-transformers saves it."""
    bert = tiny_models._make("bert", tmp_path_factory.mktemp("bert"))
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name == "potion":
            if "LIKEWISE_EVAL_DATA" not in os.environ:
                pytest.skip("LIKEWISE_EVAL_DATA is not set")
            return Path(os.environ["LIKEWISE_EVAL_DATA"]) / "models" / "potion-base-4m-fp32"
        folder = tmp_path_factory.mktemp("models") / name
        if name == "static":
            tokenizer = Tokenizer.from_file(str(bert / "tokenizer.json"))
            tokenizer.no_padding()
            tokenizer.no_truncation()
            torch.manual_seed(3)
            weights = torch.randn(tokenizer.get_vocab_size(), 24)
            weights[tokenizer.token_to_id("[UNK]")] = 0
            modules: list[Any] = [StaticEmbedding(tokenizer, embedding_weights=weights.numpy())]
        else:
            modules = [Transformer(str(bert), max_seq_length=LIMIT), Pooling(48), Normalize()]
        SentenceTransformer(modules=modules, prompts={"query": PROMPT}, device="cpu").save(str(folder))
        if name == "lower case":
            for file in folder.rglob("sentence_bert_config.json"):
                file.write_text(json.dumps({"max_seq_length": LIMIT, "do_lower_case": True}))
        return folder

    def folder(name: str) -> Path:
        if name not in made:
            made[name] = make(name)
        return made[name]

    return folder


@pytest.fixture(scope="module", params=PARAMETERS)
def subject(
    request: pytest.FixtureRequest, folders: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Subject]:
    kind = KINDS[request.param]
    folder = folders(kind.model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        encoder = load_encoder(folder, **kind.settings)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # On tiny models cores would spend their time waiting for one another.
    yield Subject(kind, encoder, SentenceTransformer(str(folder), device="cpu"))
    torch.set_num_threads(threads)


def test_it_is_an_encoder_of_its_kind(subject: Subject) -> None:
    encoder = subject.encoder
    assert isinstance(encoder, Encoder)
    assert type(encoder) is subject.kind.made
    assert encoder.recipe.dimensions == encoder.dimensions
    assert encoder.recipe.max_tokens == encoder.max_tokens


def test_rows_are_unit_float32_and_in_the_order_of_the_texts(subject: Subject) -> None:
    rows = subject.encoder.encode(TEXTS)
    assert rows.shape == (len(TEXTS), subject.encoder.dimensions)
    assert rows.dtype == np.float32
    assert np.abs(np.linalg.norm(rows, axis=1) - 1).max() < 1e-5
    subject.same(subject.encoder.encode(TEXTS[::-1])[::-1], rows)
    assert [int(row.argmax()) for row in rows @ rows.T] == list(range(len(TEXTS)))


def test_no_texts_are_no_rows(subject: Subject) -> None:
    for role in ROLES:
        rows = subject.encoder.encode([], role)
        assert (rows.shape, rows.dtype) == ((0, subject.encoder.dimensions), np.float32)
    assert subject.encoder.offsets([]) == []


def test_its_vectors_are_the_reference_librarys(subject: Subject) -> None:
    prompts = {"document": "", "query": subject.encoder.recipe.query_prompt}
    for role in ROLES:
        wanted = subject.reference.encode(TEXTS, prompt=prompts[role], normalize_embeddings=True)
        found = subject.encoder.encode(TEXTS, role)
        assert (1 - (found * wanted).sum(axis=1)).max() <= subject.kind.distance


def test_a_vector_depends_neither_on_its_batch_nor_on_its_neighbours(subject: Subject) -> None:
    together = subject.encoder.encode(TEXTS)
    alone = np.concatenate([subject.encoder.encode([text]) for text in TEXTS])
    subject.same(alone, together)
    subject.same(subject.encoder.encode(TEXTS * 12)[-len(TEXTS) :], together)


def test_a_questions_prompt_is_put_before_it_and_counted(subject: Subject) -> None:
    encoder, prompt = subject.encoder, subject.encoder.recipe.query_prompt
    assert prompt == ("" if subject.kind.model == "potion" else PROMPT)
    assert encoder.overhead() == (0 if subject.static else 2)
    assert encoder.overhead("query") == encoder.overhead() + (len(encoder.offsets([prompt])[0]) if prompt else 0)
    subject.same(encoder.encode(TEXTS, role="query"), encoder.encode([prompt + text for text in TEXTS]))
    if prompt:
        assert (encoder.encode(TEXTS, role="query") * encoder.encode(TEXTS)).sum(axis=1).max() < 0.9999


def test_offsets_are_code_points_of_the_whole_text(subject: Subject) -> None:
    text = "𝔘 the river"
    (spans,) = subject.encoder.offsets([text])
    assert spans.dtype == np.int32
    assert text.index("the") in spans[:, 0]  # 2 code points, 3 of UTF-16, 5 bytes
    assert spans[-1, 1] == len(text)
    many = "a " * 3 * LIMIT
    first, second = subject.encoder.offsets(["the", many])
    assert first[0].tolist()[0] == 0
    assert second.tolist() == [[2 * at, 2 * at + 1] for at in range(3 * LIMIT)]


@pytest.mark.parametrize("role", ROLES)
def test_a_text_over_the_limit_is_named_with_its_tokens(subject: Subject, role: Role) -> None:
    encoder, room = subject.encoder, subject.room(role)
    assert encoder.encode(["the river", subject.a_text(room)], role).shape[0] == 2
    with pytest.raises(TextTooLong) as caught:
        encoder.encode(["the river", subject.a_text(room), subject.a_text(room + 3)], role)
    error = caught.value
    assert (error.index, error.tokens, error.limit) == (2, encoder.max_tokens + 3, encoder.max_tokens)


@pytest.mark.parametrize("role", ROLES)
def test_a_truncated_text_has_the_vector_of_what_is_left_of_it(subject: Subject, role: Role) -> None:
    encoder = subject.encoder
    long = "the river " * 2 * LIMIT
    (spans,) = encoder.offsets([long])
    left = long[: spans[subject.room(role) - 1, 1]]
    found = encoder.encode([TEXTS[1], long, TEXTS[2]], role, truncate=True)
    subject.same(found, encoder.encode([TEXTS[1], left, TEXTS[2]], role))


def test_a_text_of_which_nothing_is_known_is_named_or_has_a_vector(subject: Subject) -> None:
    """Only a bag of words can know nothing of a text: other models read a token for the unknown."""
    texts = ["the river", "東", "short"]
    if subject.kind.model == "static":
        with pytest.raises(NothingKnown) as caught:
            subject.encoder.encode(texts)
        assert caught.value.texts == (1,)
    else:
        assert np.isfinite(subject.encoder.encode(texts)).all()


def test_what_is_no_list_of_texts_is_refused(subject: Subject) -> None:
    cases = ("one", "one string was given"), (["fine", " \n"], "text 1 is empty"), ([3], "text 0 is not a string")
    for texts, message in cases:
        with pytest.raises(BadInput, match=message):
            subject.encoder.encode(texts)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="role 'answer' is not one of"):
        subject.encoder.encode(["fine"], role="answer")  # type: ignore[arg-type]


def test_threads_share_it(subject: Subject) -> None:
    wanted = subject.encoder.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda at: subject.encoder.encode([TEXTS[at], *TEXTS]), range(len(TEXTS))))
    for at, rows in enumerate(found):
        subject.same(rows, np.concatenate([wanted[at : at + 1], wanted]))
