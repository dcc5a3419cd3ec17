"""A model behind an endpoint: what is asked, what is refused, who may be asked, and what is stored."""

from __future__ import annotations

import dataclasses
import email.utils
import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_endpoint import WIDTH, FakeEndpoint, serve

from indexer import Document, Index, Recipe, load_encoder
from indexer.encoders.recipes.recipe import RecipeSpec
from indexer.errors import (
    BadInput,
    DiskFull,
    EndpointUnavailable,
    ModelError,
    NothingKnown,
    RecipeMismatch,
    StorageError,
    TextTooLong,
)
from likewise.endpoints import endpoint, remote
from likewise.endpoints.endpoint_address import EndpointAddress
from likewise.endpoints.named_hosts import name_host, named_hosts
from likewise.endpoints.remote import PROBE, CharacterCounter
from search import Searcher

MOON, BREAD = "The moon orbits the earth.", "Bread is baked in an oven."


@pytest.fixture(autouse=True)
def user(tmp_path: Path, register: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration folder of a user who has named no host; pauses between attempts take no time."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LIKEWISE_API_KEY", raising=False)
    register(alone=True)
    return tmp_path / "config" / "likewise"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which take no time."""
    taken: list[float] = []
    monkeypatch.setattr(endpoint, "time", SimpleNamespace(sleep=taken.append, monotonic=time.monotonic))
    return taken


@pytest.fixture
def fake(pauses: list[float]) -> Iterator[FakeEndpoint]:
    with serve(FakeEndpoint()) as running:
        yield running


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., SimpleNamespace]:
    """Runs a command line in this process, with the encoders that it names."""
    from likewise.shell import main

    monkeypatch.delenv("LIKEWISE_INDEX", raising=False)
    monkeypatch.setattr("likewise.shell.terminal.progress.LOOK_S", 3600.0)  # no lines about the time that a test takes

    def run(*arguments: str | Path) -> SimpleNamespace:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return SimpleNamespace(code=int(ended.value.code or 0), out=printed.out, err=printed.err)

    return run


def connected(fake: FakeEndpoint, **options: Any) -> Any:
    name_host(fake.address)
    return load_encoder(fake.address, max_tokens=options.pop("max_tokens", 64), **options)


# what is asked, and what comes back


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_vectors_are_the_endpoints_own_with_unit_length(fake: FakeEndpoint, encoding: str) -> None:
    fake.encoding = encoding
    encoder = connected(fake)
    np.testing.assert_allclose(encoder.encode([MOON, BREAD]), [fake.unit(MOON), fake.unit(BREAD)], atol=1e-6)
    np.testing.assert_allclose(encoder.encode([MOON], role="query"), [fake.unit(MOON)], atol=1e-6)
    assert encoder.encode([]).shape == (0, WIDTH)
    assert fake.requests[-2] == {"model": "one", "input": [MOON, BREAD, PROBE], "encoding_format": "float"}
    assert fake.requests[-1]["input"] == [MOON]


def test_many_texts_are_asked_in_batches_of_similar_length_and_keep_their_order(fake: FakeEndpoint) -> None:
    encoder = connected(fake)
    texts = [f"word{number} " * (number % 7 + 1) for number in range(150)]
    before = len(fake.requests)
    vectors = encoder.encode(texts)
    np.testing.assert_allclose(vectors, [fake.unit(text) for text in texts], atol=1e-6)
    assert sorted(len(request["input"]) for request in fake.requests[before:]) == [22 + 1, 64 + 1, 64 + 1]


def test_an_answer_in_another_order_is_put_in_order(fake: FakeEndpoint) -> None:
    fake.answer = lambda number, right: (200, {}, right | {"data": right["data"][::-1]})
    np.testing.assert_allclose(connected(fake).encode([MOON, BREAD]), [fake.unit(MOON), fake.unit(BREAD)], atol=1e-6)


def test_a_server_that_takes_few_texts_gets_few(fake: FakeEndpoint) -> None:
    fake.most_texts = 9
    encoder = connected(fake)
    texts = [f"word{number}" for number in range(40)]
    np.testing.assert_allclose(encoder.encode(texts), [fake.unit(text) for text in texts], atol=1e-6)
    before = len(fake.requests)
    encoder.encode(texts)
    assert max(len(request["input"]) for request in fake.requests[before:]) <= 9


def test_prompts_leading_dimensions_and_a_role_that_the_endpoint_knows(fake: FakeEndpoint) -> None:
    name_host(fake.address)
    spec = RecipeSpec(fake.address, max_tokens=64, dimensions=8, query_prompt="ask ", document_prompt="keep ")
    encoder = load_encoder(spec)
    whole = fake.vector(f"keep {MOON}")[:8]
    np.testing.assert_allclose(encoder.encode([MOON]), [whole / np.linalg.norm(whole)], atol=1e-6)
    encoder.encode([MOON], role="query")
    assert fake.requests[-1]["input"] == [f"ask {MOON}"]
    assert "input_type" not in fake.requests[-1]
    fake.honours_input_type = True
    assert connected(fake).recipe.remote == connected(fake).recipe.remote
    assert [request for request in fake.requests if "input_type" in request] == []
    asked = len(fake.requests)
    told = load_encoder(RecipeSpec(fake.address, max_tokens=64, input_type=True))
    np.testing.assert_allclose(told.encode([MOON]), [fake.unit(MOON)], atol=1e-6)
    question = fake.vector(MOON, "query")
    np.testing.assert_allclose(told.encode([MOON], role="query"), [question / np.linalg.norm(question)], atol=1e-6)
    assert [request["input_type"] for request in fake.requests[asked:]] == ["document", "document", "query"]
    assert told.recipe.remote is not None
    assert told.recipe.remote.input_type
    with pytest.raises(BadInput, match="input_type is for endpoints"):
        Index.create("x.index", model=RecipeSpec("all-MiniLM-L6-v2", input_type=True))


# the limit of tokens


def test_texts_are_counted_by_characters_without_a_tokenizer() -> None:
    counter = CharacterCounter("", "ab cdef: ")
    (spans,) = counter.offsets(["Lighthouse, né 東京!"])
    assert [("Lighthouse, né 東京!"[start:end]) for start, end in spans] == [
        *("Lig", "hth", "ous", "e", ",", "n", "é", "東", "京", "!")
    ]
    assert (counter.overhead("query"), counter.overhead("document")) == (4, 8)


def test_a_new_endpoint_needs_a_limit_and_is_asked_once(
    fake: FakeEndpoint, tmp_path: Path, shell: Callable[..., SimpleNamespace]
) -> None:
    name_host(fake.address)
    for limit in (None, 0):
        with pytest.raises(ModelError, match=r"^http://127.* how many tokens .*: give max_tokens=N$"):
            load_encoder(fake.address, max_tokens=limit)
    (tmp_path / "texts.txt").write_text(f"{MOON}\n{BREAD}\n")
    for arguments in (("pairs", tmp_path / "texts.txt"), ("embed", MOON)):
        failed = shell(*arguments, "--model", fake.address)
        assert failed.code == 2
        assert "give max_tokens=N, in the shell --max-tokens N of likewise index or migrate" in failed.err
        assert "other commands take no new endpoint" in failed.err
    assert fake.requests == []
    assert load_encoder(fake.address, max_tokens=400).max_tokens == 400
    assert fake.requests == [{"model": "one", "input": [PROBE], "encoding_format": "float"}]


@pytest.mark.parametrize(
    ("input_type", "fingerprint", "identity"),
    [
        (False, "8b68d10b0dce3e8716d24938dbb0038805dc72d5d53fba7a17fac25d143d47f8", "5c43a64f362816e5"),
        pytest.param(
            *(True, "1cb5f46b4fc55dce43a053e61068f5b0a79c8988599f4a9568afd67d91335905", "5d3c3cd994a663d4"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_index_whose_limit_and_roles_were_found_by_trial_works_as_before(
    fake: FakeEndpoint,
    tmp_path: Path,
    shell: Callable[..., SimpleNamespace],
    register: Callable[..., None],
    input_type: bool,
    fingerprint: str,
    identity: str,
) -> None:
    """The recipe was written by a version that still made trials."""
    fake.width, fake.honours_input_type = 8, input_type
    name_host(fake.address)
    stored = (
        f'{{"model": "{fake.address}", "fingerprint": "{fingerprint}", "dimensions": 8, "max_tokens": 242, '
        '"layers": [], "combine": "mean", "pooling": null, "query_prompt": "", "document_prompt": "", '
        '"normalize": true, '
        '"remote": {"probe": "d3ad3bb41a164ab861b0b9b4b138e136", "tokenizer": "", '
        f'"tokenizer_sha256": "", "input_type": {json.dumps(input_type)}}}}}'
    )
    recipe = Recipe.from_json(stored)
    assert (recipe.to_json(), recipe.identity) == (stored, identity)
    path = tmp_path / "x.index"
    with Index.create(path, model=recipe) as index:
        index.add([Document("a", MOON)])
    register(alone=True)
    with Index.open(path) as index:
        assert index.recipe is not None
        assert index.recipe.to_json() == stored
        index.add([Document("b", BREAD)])
    with Searcher(path) as searcher:
        assert [hit.uri for hit in searcher.search(BREAD)] == ["b", "a"]
    assert {request.get("input_type") for request in fake.requests} == ({"document", "query"} if input_type else {None})
    (tmp_path / "c.txt").write_text(BREAD)
    assert shell("index", path, tmp_path / "c.txt", "--model", fake.address).code == 0
    assert ("input_type is sent" in shell("doctor", path).out) == input_type
    assert ("roles are not sent: --input-type" in shell("doctor", path).out) != input_type
    assert shell("index", path, tmp_path / "c.txt", "--input-type").code == (0 if input_type else 2)
    assert shell("index", path, tmp_path / "c.txt", "--rebuild", "--max-tokens", "32").code == 0
    with Index.open(path) as index:
        assert index.recipe is not None
        assert index.recipe.to_json() == stored


def test_a_text_over_the_limit_is_an_error_or_cut(fake: FakeEndpoint) -> None:
    encoder = connected(fake, max_tokens=16)
    text = "one two six ten " * 5
    with pytest.raises(TextTooLong) as error:
        encoder.encode([MOON[:8], text])
    assert (error.value.index, error.value.tokens, error.value.limit) == (1, 24, 16)
    np.testing.assert_allclose(encoder.encode([text], truncate=True), [fake.unit(text[: 4 * 12])], atol=1e-6)


def test_a_text_that_the_server_finds_too_long_is_cut_again(fake: FakeEndpoint, tmp_path: Path) -> None:
    """The estimate may be too low: the server refuses, and the passages become shorter."""
    with Index.create(tmp_path / "x.index", model=fake.address, max_tokens=64, overlap=0) as index:
        fake.limit = 50
        index.add([Document("a", "one two six ten " * 40)])
        info = index.info()
    assert info.passages >= 4
    assert [text for text in fake.requests[-1]["input"] if not (len(text.split()) <= 50)] == []
    encoder = connected(fake, max_tokens=64)
    assert encoder.encode(["one two six ten " * 15], truncate=True).shape == (1, WIDTH)


REFUSALS = {
    "input (1205 tokens) is too large to process. increase the physical batch size (current batch size: 512)": 500,
    "input is too large to process. increase the physical batch size": 500,
    "input (900 tokens) is larger than the max context size (512 tokens). skipping": 500,
    "the request exceeds the available context size. try increasing the context size": 500,
    "the input length exceeds the context length": 500,
    "RuntimeError: failed to generate embedding: input length exceeds the context length": 500,
    "Input validation error: `inputs` must have less than 512 tokens. Given: 900": 422,
    "inputs must have less than 512 tokens. Given: 900": 413,
    "This model's maximum context length is 512 tokens, however you requested 900": 400,
    "text 0 has 900 tokens and the model reads 512": 400,
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_the_text_that_a_server_finds_too_long_is_named(fake: FakeEndpoint, reason: str, pauses: list[float]) -> None:
    encoder = connected(fake)
    fake.limit, fake.refusal = 40, (REFUSALS[reason], {"error": {"message": reason}})
    with pytest.raises(TextTooLong) as error:
        encoder.encode(["one two", "six ten " * 25, MOON])
    assert (error.value.index, error.value.limit, pauses) == (1, 64, [])


@pytest.mark.parametrize(
    "reason",
    [
        *("CUDA out of memory: 512 tokens too large", "context deadline exceeded", "context canceled"),
        *("too many requests", "failed to decode batch", "request timeout exceeded", "unexpected token < in JSON"),
        "rate limit of tokens exceeded",
    ],
)
def test_other_internal_errors_are_not_of_a_text(fake: FakeEndpoint, reason: str, pauses: list[float]) -> None:
    encoder = connected(fake)
    fake.limit, fake.refusal = 40, (500, {"error": reason})
    with pytest.raises(EndpointUnavailable, match="answers 500"):
        encoder.encode(["six ten " * 25])
    assert len(pauses) == 4


def test_a_document_that_the_server_finds_too_long_fails_alone(
    fake: FakeEndpoint, tmp_path: Path, shell: Callable[..., SimpleNamespace]
) -> None:
    path, texts = tmp_path / "x.index", {"a": "one two", "b": "six ten " * 100, "c": MOON}
    fake.limit, fake.refusal = 40, (500, {"error": {"message": next(iter(REFUSALS))}})
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    ran = shell("index", path, *sorted(tmp_path.glob("*.txt")), "--model", fake.address, "--max-tokens", "4000")
    assert ran.code == 1
    assert "the model finds a passage of 801 characters too long: raise the limit of its server" in ran.err
    with Index.open(path) as index:
        assert sorted(Path(document.uri).name for document in index) == ["a.txt", "c.txt"]
        assert [(row.spans, row.too_long) for row in index.embedder.embed(Document("x", texts["b"]))] == [((), 799)]


# what may pass, and what never does


def test_a_busy_endpoint_is_asked_again_when_it_says(fake: FakeEndpoint, pauses: list[float]) -> None:
    encoder = connected(fake)
    first = len(fake.requests)
    date = email.utils.formatdate(time.time() + 60, usegmt=True)
    headers = {0: {"Retry-After": "7"}, 1: {"Retry-After": date}, 2: {}}

    def busy(number: int, right: Any) -> tuple[int, dict[str, str], Any]:
        turn = number - first
        return (429 if turn % 2 else 503, headers[turn], {"error": "busy"}) if turn in headers else (200, {}, right)

    fake.answer = busy
    np.testing.assert_allclose(encoder.encode([MOON]), [fake.unit(MOON)], atol=1e-6)
    assert len(pauses) == 3
    assert pauses[0] == 7
    assert 50 < pauses[1] <= 60
    assert 1 <= pauses[2] <= 1.25
    pauses.clear()
    first = len(fake.requests)
    headers = {turn: {"Retry-After": "2"} for turn in range(9)} | {9: {"Retry-After": "soon"}, 10: {"Retry-After": "0"}}
    encoder.encode([MOON])  # A busy server is asked more often than a broken one.
    assert pauses[:9] == [2] * 9
    assert [pause for pause in pauses[9:] if not (20 >= pause > 2)] == []
    assert len(pauses) == 11
    assert len({bytes(json.dumps(request), "utf-8") for request in fake.requests[first:]}) == 1


def test_attempts_and_pauses_end_before_the_deadline(
    fake: FakeEndpoint, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = connected(fake)
    monkeypatch.setattr(endpoint, "time", SimpleNamespace(sleep=pauses.append, monotonic=lambda: sum(pauses)))
    fake.answer = lambda number, right: (503, {"Retry-After": "9"}, {"error": "busy"})
    with pytest.raises(EndpointUnavailable, match=r"127.0.0.1:\d+/v1/embeddings answers 503: busy \(4 attempts\): it"):
        encoder.encode([MOON], role="query")
    assert pauses == [9, 9, 9]


@pytest.mark.parametrize(
    ("status", "headers", "body", "message"),
    [
        (503, {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}, {"error": "no"}, "answers 503: no: it is busy"),
        (429, {"Retry-After": "3600"}, {"error": {"message": "slow down"}}, "answers 429: slow down: it is busy"),
        (500, {}, {"error": {"message": "CUDA out of memory"}}, r"answers 500: CUDA out of memory \(5 attempts"),
        (200, {"Content-Length": "9999"}, b'{"data": [', r"ended the connection .*\(5 attempts"),
    ],
)
def test_what_does_not_pass_ends_with_exit_code_3(
    fake: FakeEndpoint, status: int, headers: dict[str, str], body: Any, message: str
) -> None:
    encoder = connected(fake)
    fake.answer = lambda number, right: (status, headers, body)
    with pytest.raises(EndpointUnavailable, match=message) as error:
        encoder.encode([MOON])
    assert error.value.exit_code == 3


def changed(**members: Any) -> Callable[[int, Any], tuple[int, dict[str, str], Any]]:
    """An answer whose first vector is changed."""

    def answer(number: int, right: Any) -> tuple[int, dict[str, str], Any]:
        first, *others = right["data"]
        return 200, {}, {**right, "data": [first | members, *others]}

    return answer


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (changed(embedding=[float("nan")] * WIDTH), ModelError, "infinity or not-a-number: nothing was stored"),
        (changed(embedding=[1e39] * WIDTH), ModelError, "infinity or not-a-number"),
        (changed(embedding=[None] * WIDTH), ModelError, "infinity or not-a-number|form of OpenAI"),
        (changed(embedding=[1.0] * 3), ModelError, "vectors of different widths"),
        (changed(embedding="%%%"), ModelError, "does not answer in the form of OpenAI"),
        (changed(embedding=7), ModelError, "does not answer in the form of OpenAI"),
        (changed(embedding=[[1.0] * WIDTH] * 3), ModelError, "a list of vectors for a text"),
        (changed(embedding=[[1.0] * WIDTH]), ModelError, "a list of vectors for a text"),
        (changed(index=1), ModelError, "which vector is for which text"),
        (changed(index=True), ModelError, "which vector is for which text"),
        (changed(embedding=[0.0] * WIDTH), NothingKnown, "has no vector for text 0"),
        (lambda number, right: (200, {}, right | {"data": right["data"][1:]}), ModelError, "2 vectors for 3 texts"),
        (lambda number, right: (200, {}, {"data": "none"}), ModelError, "does not answer in the form of OpenAI"),
        (lambda number, right: (200, {}, [1]), ModelError, "does not answer in the form of OpenAI"),
        (lambda number, right: (200, {}, b"<html>"), ModelError, "something other than JSON"),
        (lambda number, right: (200, {}, b"[" * 200_000), ModelError, "something other than JSON"),
        (lambda number, right: (400, {}, b'{"error":' * 200_000), ModelError, r"rejects the texts \(400: \{"),
        (lambda number, right: (404, {}, {"error": "no\x1b[31m one"}), ModelError, r"404: no \[31m one; check"),
        (lambda number, right: (302, {"Location": "http://evil.test/"}, b""), ModelError, "moved .* to http://evil"),
        (lambda number, right: (401, {}, {"detail": "no key"}), ModelError, "wants a key in LIKEWISE_API_KEY"),
        (lambda number, right: (400, {}, {"detail": "bad user"}), ModelError, "rejects the texts .*bad user"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_an_error_and_stores_nothing(
    fake: FakeEndpoint, tmp_path: Path, answer: Any, error: type[Exception], message: str
) -> None:
    with Index.create(tmp_path / "x.index", model=fake.address, max_tokens=64) as index:
        fake.answer = answer
        with pytest.raises(error, match=message):
            index.add([Document("a", MOON), Document("b", BREAD)])
        assert len(index) == 0


def test_a_slow_answer_ends_at_the_deadline(fake: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = connected(fake)
    released = threading.Event()
    monkeypatch.setattr(remote, "QUERY_SECONDS", 0.1)
    fake.answer = lambda number, right: (200, {}, right) if released.wait(5) else (500, {}, b"")
    with pytest.raises(EndpointUnavailable, match="did not answer in time: it may be loading the model"):
        encoder.encode([MOON], role="query")
    released.set()


@pytest.mark.parametrize("status", [200, 400, 429, 503])
def test_an_answer_that_comes_slowly_ends_at_the_deadline(
    fake: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    encoder = connected(fake)
    done = threading.Event()
    monkeypatch.setattr(remote, "QUERY_SECONDS", 0.2)
    fake.answer = lambda number, right: (
        status,
        {"Content-Length": "9999"},
        (b"x" for _ in range(200) if not done.wait(0.05)),
    )
    begun = time.monotonic()
    with pytest.raises(EndpointUnavailable, match="did not answer in time"):
        encoder.encode([MOON], role="query")
    done.set()
    assert time.monotonic() - begun < 3


def test_where_nothing_listens(pauses: list[float], shell: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    with serve(FakeEndpoint()) as gone:
        pass
    (tmp_path / "a.txt").write_text(MOON)
    said = shell("index", tmp_path / "x.index", tmp_path / "a.txt", "--model", gone.address, "--max-tokens", 64)
    assert said.code == 3
    assert "cannot be reached: nothing listens there (3 attempts" in said.err
    assert "start it there, or check the address" in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "x.index").exists()


# another model


def test_another_model_is_refused_when_an_index_is_opened(fake: FakeEndpoint, tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", model=fake.address, max_tokens=64) as index:
        index.add([Document("a", MOON)])
    fake.model = "two"
    with (
        Index.open(tmp_path / "x.index") as index,
        pytest.raises(RecipeMismatch, match=r"another model .* cosine -?0\.\d"),
    ):
        index.add([Document("b", BREAD)])
    with Searcher(tmp_path / "x.index") as searcher, pytest.raises(RecipeMismatch, match="start it with that model"):
        searcher.search("moon")
    fake.model, fake.width = "one", 16
    with Searcher(tmp_path / "x.index") as searcher, pytest.raises(RecipeMismatch):
        searcher.search("moon")


def test_another_model_is_noticed_in_the_middle_of_a_run(
    fake: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.create(tmp_path / "x.index", model=fake.address, max_tokens=64) as index:
        index.add([Document("a", MOON)])
        encoder = index.encoder
        fake.model = "two"
        with pytest.raises(RecipeMismatch, match="another model"):
            index.add([Document("b", BREAD)])
        assert [document.uri for document in index] == ["a"]
    encoder.encode([MOON], role="query")  # verified a moment ago
    monkeypatch.setattr(remote, "VERIFY_SECONDS", -1)
    with pytest.raises(RecipeMismatch, match="another model"):
        encoder.encode([MOON], role="query")


def test_noise_is_the_same_model_and_a_prompt_is_not(fake: FakeEndpoint) -> None:
    recipe = connected(fake).recipe
    assert recipe.remote is not None
    row = np.array(recipe.remote.vector)

    def turned(cosine: float) -> Recipe:
        other = np.roll(row, 1) - row * (np.roll(row, 1) @ row)
        mixed = cosine * row + np.sqrt(1 - cosine**2) * other / np.linalg.norm(other)
        probe = dataclasses.replace(recipe.remote, probe=mixed.astype("<f2").tobytes().hex())
        return dataclasses.replace(recipe, remote=probe, fingerprint=probe.fingerprint)

    assert turned(0.997).identity != recipe.identity
    assert recipe.same(turned(0.997))
    assert not recipe.same(turned(0.985))
    assert not recipe.same(dataclasses.replace(turned(1.0), max_tokens=32))
    assert not recipe.same(dataclasses.replace(recipe, remote=None, fingerprint="0" * 64))
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert Recipe.parse("http://127.0.0.1:1/v1#nomic:latest").model == "http://127.0.0.1:1/v1#nomic:latest"


# who may be asked


def test_naming_a_host_is_recorded_for_this_user_alone(fake: FakeEndpoint, tmp_path: Path, user: Path) -> None:
    assert named_hosts() == frozenset()
    with Index.create(tmp_path / "x.index", model=fake.address, max_tokens=64) as index:
        index.add([Document("a", MOON), Document("b", BREAD)])
    host = fake.address.partition("/v1")[0]
    assert json.loads((user / "hosts.json").read_text()) == {"hosts": [host]}
    assert (user / "hosts.json").stat().st_mode & 0o777 == 0o600
    with Searcher(tmp_path / "x.index") as searcher:
        assert [hit.uri for hit in searcher.search("moon orbits", k=1)] == ["a"]
    name_host("http://other.test/v1#m")
    assert named_hosts() == {host, "http://other.test:80"}


def test_an_index_of_somebody_else_sends_nothing(
    fake: FakeEndpoint,
    tmp_path: Path,
    user: Path,
    shell: Callable[..., SimpleNamespace],
    register: Callable[..., None],
    monkeypatch: Any,
) -> None:
    with Index.create(tmp_path / "x.index", model=fake.address, max_tokens=64) as index:
        index.add([Document("a", MOON)])
    (user / "hosts.json").unlink()
    register(alone=True)
    monkeypatch.setenv("LIKEWISE_API_KEY", "secret")
    (tmp_path / "b.txt").write_text(BREAD)
    asked = len(fake.requests)
    for command in (
        ("search", tmp_path / "x.index", "moon"),
        ("index", tmp_path / "x.index", tmp_path / "b.txt"),
        ("index", tmp_path / "x.index", tmp_path / "b.txt", "--rebuild"),
        ("index", tmp_path / "x.index", tmp_path / "b.txt", "--rebuild", "--max-tokens", "32"),
        ("embed", "moon", "--model", fake.address),
    ):
        said = shell(*command)
        assert said.code == 2, (command, said)
        assert "because you have not named this host on this machine" in said.err
    with pytest.raises(ModelError, match="name it once as the model of an index"):
        Index.open(tmp_path / "x.index", model=fake.address)
    with Index.open(tmp_path / "x.index") as index:
        assert index.recipe is not None
        with pytest.raises(ModelError, match="have not named"):
            Index.create(tmp_path / "y.index", model=index.recipe)
    assert len(fake.requests) == asked
    assert shell("search", tmp_path / "x.index", "moon", "--mode", "words").code == 0
    said = shell("index", tmp_path / "x.index", tmp_path / "b.txt", "--model", fake.address)
    assert said.code == 0
    assert shell("search", tmp_path / "x.index", "bread baked").out.count("b.txt") >= 1
    assert fake.keys[-1] == "Bearer secret"


def test_a_configuration_file_names_no_host(
    fake: FakeEndpoint, tmp_path: Path, shell: Callable[..., SimpleNamespace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have come with the folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".likewise.toml").write_text(f'model = "{fake.address}"')
    (tmp_path / "a.txt").write_text(MOON)
    said = shell("index", tmp_path / "x.index", tmp_path / "a.txt", "--max-tokens", 64)
    assert said.code == 2
    assert "have not named" in said.err
    assert (fake.requests, named_hosts()) == ([], frozenset())
    name_host(fake.address)
    assert shell("index", tmp_path / "x.index", tmp_path / "a.txt", "--max-tokens", 64).code == 0


def test_the_key_is_neither_stored_nor_printed_nor_sent_on(
    fake: FakeEndpoint, tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIKEWISE_API_KEY", "sk-secret")
    with serve(FakeEndpoint()) as other, Index.create(tmp_path / "x.index", model=fake.address, max_tokens=64) as index:
        assert set(fake.keys) == {"Bearer sk-secret"}
        fake.answer = lambda number, right: (307, {"Location": other.address}, b"")
        with pytest.raises(ModelError, match="moved"):
            index.add([Document("a", MOON)])
        assert other.requests == []
        fake.answer = lambda number, right: (403, {}, {"error": {"message": "wrong key sk-secret"}})
        with pytest.raises(ModelError, match=r"refuses the key of LIKEWISE_API_KEY \(403: wrong key \.\.\.\)"):
            index.add([Document("a", MOON)])
        monkeypatch.setenv("LIKEWISE_API_KEY", "sk\nX-Other: 1")
        with pytest.raises(ModelError, match="characters that a header cannot have"):
            index.add([Document("a", MOON)])
    stored = [file for folder in (tmp_path / "x.index", user) for file in folder.rglob("*") if file.is_file()]
    assert stored
    assert not any(b"sk-secret" in file.read_bytes() for file in stored)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://host/v1", "names no model"),
        ("http://host/v1#", "names no model"),
        ("http://user:word@host/v1#m", "user, a password or a query"),
        ("http://host/v1?key=1#m", "user, a password or a query"),
        ("http://ho st/v1#m", "characters that an address cannot have"),
        ("http://host:99999/v1#m", "is not an address"),
        ("http:///v1#m", "names no host"),
        ("http://user:word@host/v1", "'http://host/v1' names no model"),
        ("http://user:word@host:port/v1#m", "'http://host:port/v1' is not an address"),
        ("http://user:word@ho st/v1#m", "'http://ho st/v1' has characters"),
        ("http://host/v1?key=word", "'http://host/v1' names no model"),
        ("http://host:0/v1#m", "is not an address"),
        ("http://a..b/v1#m", "is not an address"),
        (f"http://{'a' * 64}.b/v1#m", "is not an address"),
    ],
)
def test_an_address_that_makes_no_sense(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as error:
        name_host(text)
    assert "word" not in str(error.value).replace("password", "")
    assert named_hosts() == frozenset()


def test_addresses_of_one_endpoint_are_written_in_one_way() -> None:
    for text in ("HTTP://LocalHost:80/v1/#a:b#c", "http://localhost/v1/embeddings#a:b#c"):
        assert str(EndpointAddress.parse(text)) == "http://localhost:80/v1#a:b#c"
    assert EndpointAddress.parse("https://[::1]/v1#m").url == "https://[::1]:443/v1/embeddings"


def test_an_endpoint_without_tls_is_not_taken_for_one_with_a_wrong_certificate(fake: FakeEndpoint) -> None:
    address = fake.address.replace("http://", "https://")
    name_host(address)
    with pytest.raises(ModelError, match=r"does not speak TLS .* write http://"):
        load_encoder(address, max_tokens=64)
    assert fake.requests == []


def test_a_broken_or_unwritable_file_of_hosts_is_an_error_that_says_so(user: Path) -> None:
    user.mkdir(parents=True)
    (user / "hosts.json").write_text("[]")
    with pytest.raises(ModelError, match=r"hosts\.json.* cannot be read"):
        name_host("http://host/v1#m")
    (user / "hosts.json").unlink()
    user.rmdir()
    user.symlink_to("nowhere")
    with pytest.raises(StorageError, match="cannot be written"):
        name_host("http://host/v1#m")


def test_a_host_that_cannot_be_written_leaves_no_draft(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    name_host("http://one/v1#m")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull, match="cannot be written"):
        name_host("http://two/v1#m")
    assert ([path.name for path in user.iterdir()], named_hosts()) == (["hosts.json"], {"http://one:80"})


# whole indexes


def test_an_index_from_the_shell_from_beginning_to_end(
    fake: FakeEndpoint, tmp_path: Path, shell: Callable[..., SimpleNamespace]
) -> None:
    for name, text in (("moon", MOON), ("bread", BREAD)):
        (tmp_path / f"{name}.txt").write_text(text)
    index = tmp_path / "x.index"
    sources = tmp_path / "moon.txt", tmp_path / "bread.txt"
    said = shell("index", index, *sources, "--model", fake.address)
    assert said.code == 2
    assert "--max-tokens N" in said.err
    assert not index.exists()
    said = shell("index", index, *sources, "--model", fake.address, "--max-tokens", 64, "--json")
    assert said.code == 0, said.err
    assert said.err == ""
    assert json.loads(said.out.splitlines()[-1])["notes"] == []
    assert "bread.txt" in shell("search", index, "bread oven", "-k", "1").out
    described = json.loads(shell("info", index, "--json").out)
    assert (described["model"], described["dimensions"]) == (fake.address, WIDTH)
    asked = len(fake.requests)
    assert '"unchanged": 2' in shell("index", index, tmp_path / "moon.txt", tmp_path / "bread.txt", "--json").out
    assert len(fake.requests) == asked
    for command in (("compile", index), ("model", fake.address), ("tokens", "moon", "--model", fake.address)):
        said = shell(*command)
        assert said.code == 2, (command, said)
        assert "behind" in said.err, command
    assert shell("check", index).code == 0
    said = shell("index", index, tmp_path / "moon.txt", "--model", fake.address, "--precision", "float32", "--rebuild")
    assert said.code == 2
    assert "chooses precision, device and runtime by itself" in said.err
    said = shell("index", tmp_path / "y.index", tmp_path / "moon.txt", "--model", fake.address, "--pooling", "cls")
    assert said.code == 2
    assert "an endpoint pools by itself" in said.err
    said = shell("index", tmp_path / "y.index", tmp_path / "moon.txt", "--tokenizer", tmp_path)
    assert said.code == 2
    assert "tokenizer is for endpoints, and this model has its own: leave it out, in the shell --tokenizer" in said.err


def test_an_endpoint_that_moves_is_followed_if_it_has_the_model(
    fake: FakeEndpoint, tmp_path: Path, shell: Callable[..., SimpleNamespace]
) -> None:
    index = tmp_path / "x.index"
    (tmp_path / "a.txt").write_text(MOON)
    (tmp_path / "b.txt").write_text(BREAD)
    assert shell("index", index, tmp_path / "a.txt", "--model", fake.address, "--max-tokens", "48").code == 0
    with serve(FakeEndpoint(model="two")) as other:
        said = shell("index", index, tmp_path / "b.txt", "--model", other.address)
        assert said.code == 2
        assert "answers with another model" in said.err
    with serve(FakeEndpoint()) as same:
        assert shell("index", index, tmp_path / "b.txt", "--model", same.address).code == 0
        with Index.open(index, model=same.address) as opened:
            assert opened.recipe is not None
            assert opened.recipe.model == same.address
            assert len(opened) == 2


def test_a_tokenizer_cuts_passages_and_is_recorded(
    fake: FakeEndpoint, tmp_path: Path, shell: Callable[..., SimpleNamespace], register: Callable[..., None]
) -> None:
    import tokenizers

    words = {word: number for number, word in enumerate(["[UNK]", "the", "moon", "orbits", "earth", "."])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    with Index.create(tmp_path / "x.index", model=fake.address, tokenizer=file, max_tokens=16, overlap=0) as index:
        index.add([Document("a", "the moon orbits the earth. " * 8)])
        assert (index.info().passages, index.info().tokens) == (4, 48)  # by characters, 10 for each sentence
    (tmp_path / "b.txt").write_text(BREAD)
    assert shell("index", tmp_path / "x.index", tmp_path / "b.txt", "--tokenizer", file).code == 0
    words["new"] = len(words)
    tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]")).save(str(file))
    register(alone=True)
    said = shell("search", tmp_path / "x.index", "moon")
    assert said.code == 2
    assert "is not the one that the index was cut with" in said.err
    with pytest.raises(BadInput, match="this model has its own"):
        Index.create(tmp_path / "y.index", tokenizer=file)


def test_indexing_through_an_endpoint_imports_no_torch(
    fake: FakeEndpoint, tmp_path: Path, environment: SimpleNamespace
) -> None:
    (tmp_path / "a.txt").write_text(MOON)
    program = (
        "import sys, likewise.shell\n"
        "indexing = ['index', *sys.argv[1:4], '--model', sys.argv[4], '--max-tokens', '64']\n"
        "for line in (indexing, ['search', sys.argv[1], 'moon']):\n"
        "    try:\n        likewise.shell.main(line)\n    except SystemExit as end:\n        assert not end.code\n"
        "print(sorted({'torch', 'transformers', 'openvino', 'sentence_transformers'} & set(sys.modules)))"
    )
    arguments = [tmp_path / "x.index", tmp_path / "a.txt", "--json", fake.address]
    said = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=110, check=False
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines()[-1] == "[]"


def test_our_own_service_is_an_endpoint(tmp_path: Path, encoder: Any, register: Callable[..., None]) -> None:
    pytest.importorskip("uvicorn")
    import uvicorn

    from likewise.service import create_app

    with Index.create(tmp_path / "served.index", model=encoder) as index:
        index.add([Document("moon", MOON), Document("bread", BREAD)])
    register(encoder)
    app = create_app({"papers": str(tmp_path / "served.index")})
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        address = f"http://127.0.0.1:{port}/v1#papers"
        with Index.create(tmp_path / "x.index", model=address, max_tokens=24) as index:
            index.add([Document("a", MOON), Document("b", BREAD)])
            np.testing.assert_allclose(index.encoder.encode([MOON]), encoder.encode([MOON]), atol=1e-6)
            with pytest.raises(ModelError, match="404"):
                Index.create(tmp_path / "y.index", model=address.replace("papers", "other"), max_tokens=24)
        with Searcher(tmp_path / "x.index") as searcher:
            assert [hit.uri for hit in searcher.search("baked bread")] == ["b", "a"]
    finally:
        server.should_exit = True
        thread.join()
