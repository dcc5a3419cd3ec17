"""An encoder that asks an endpoint in OpenAI's form: Ollama, vLLM, LM Studio, llama.cpp, TEI, or `likewise serve`.

One request, with its retries and checks, is in endpoint.py; which hosts may be asked is in named_hosts.py. Imports no
torch.
"""

from __future__ import annotations

import hashlib
import re
import struct
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes.locate import lasting_name
from indexer.encoders.recipes.port import Counter, Role, Tokenizing
from indexer.encoders.recipes.recipe import MIN_PROBE_COSINE, PROBE, Recipe, RecipeSpec, Remote
from indexer.encoders.tokens.batching import tell
from indexer.encoders.tokens.texts import checked_texts
from indexer.errors import Message, ModelError, NothingKnown, RecipeMismatch, TextTooLong
from indexer.records import Vector
from likewise.endpoints.endpoint import Endpoint, Rejected
from likewise.endpoints.endpoint_address import EndpointAddress
from likewise.endpoints.tokenizer_file import find_tokenizer

BATCH_TEXTS = 64
BATCH_CHARACTERS = 128 * 1024
"""Maximum characters of one request, so that a request with long passages does not take minutes."""
CONCURRENT_REQUESTS = 2
"""Maximum requests at a time: the second is on its way while the server computes the first. More would only wait in a
server with one device."""

DOCUMENT_SECONDS = 300.0
QUERY_SECONDS = 30.0
PROBE_SECONDS = 120.0
"""Maximum seconds of the first request. A server may have to load its model first."""
VERIFY_SECONDS = 60.0
"""Maximum seconds before a question checks the probe text again. Requests with documents always contain the probe
text."""

_TOO_LONG = re.compile(r"token|length|long|large|context|exceed|maximum|size", re.IGNORECASE)
_CHARACTERS = re.compile(r"[A-Za-z]{1,3}|[^\sA-Za-z]")
_SPECIAL_TOKENS = 4
"""Maximum special tokens around a text. Two are usual."""


class CharacterCounter:
    """Counts up to three Latin letters, or one other character, as a token. Tokenizers find at most as many tokens.

    English has more than four characters per token. Texts in other scripts are cut into shorter passages than
    necessary. The model's own tokenizer cuts them better.
    """

    def __init__(self, query_prompt: str, document_prompt: str) -> None:
        self._prompts: dict[Role, str] = {"query": query_prompt, "document": document_prompt}

    def overhead(self, role: Role = "document") -> int:
        return _SPECIAL_TOKENS + len(_CHARACTERS.findall(self._prompts[role]))

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        spans = ([match.span() for match in _CHARACTERS.finditer(text)] for text in texts)
        return [np.array(text_spans, dtype=np.int32).reshape(-1, 2) for text_spans in spans]


class RemoteEncoder(Tokenizing):
    """An `Encoder` whose vectors an endpoint computes. Threads may share it."""

    def __init__(self, recipe: Recipe, endpoint: Endpoint, counter: Counter, width: int) -> None:
        """Use `connect` or `open_remote`.

        Args:
            width: number of dimensions that the endpoint gives. The recipe may keep fewer.
        """
        assert recipe.remote is not None
        self.recipe, self.tokenizer = recipe, counter
        self._remote, self._endpoint = recipe.remote, endpoint
        self._width = width
        self._batch_texts = BATCH_TEXTS
        self._verified = time.monotonic()

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        """Return unit rows (texts, dimensions), float32; see `Encoder.encode`.

        Raises:
            EndpointUnavailable: the endpoint cannot be reached, is too busy, or too slow.
            RecipeMismatch: it answers with another model than the recipe's.
            ModelError: it answers with something that is not a vector for each text.
        """
        prepared = self._within_limit(checked_texts(texts, role), role, truncate)
        if role == "query" and time.monotonic() - self._verified > VERIFY_SECONDS:
            self.require_probe(self._ask([PROBE], "document", PROBE_SECONDS))
        # Texts of similar length together: servers pad a batch to its longest text. The longest come first, so that a
        # text over the server's limit is refused before the others are embedded.
        order = sorted(range(len(prepared)), key=lambda index: -len(prepared[index]))
        rows = np.zeros((len(prepared), self.recipe.dimensions), np.float32)
        batches = list(self._batches(order, prepared))

        def embed(batch: list[int]) -> None:
            rows[batch] = self._embed(batch, prepared, role, truncate)
            tell(len(batch))

        if len(batches) == 1:
            embed(batches[0])
        elif batches:
            with ThreadPoolExecutor(CONCURRENT_REQUESTS, "likewise-endpoint") as pool:
                futures = [pool.submit(copy_context().run, embed, batch) for batch in batches]
                try:
                    for future in futures:
                        future.result()
                finally:
                    pool.shutdown(wait=True, cancel_futures=True)
        if unknown := np.flatnonzero(~rows.any(axis=1)).tolist():
            raise NothingKnown(unknown, self.recipe.model)
        return rows

    def _within_limit(self, texts: list[str], role: Role, truncate: bool) -> list[str]:
        """Return the texts with their prompt, cut to the limit if that is allowed."""
        remaining = self.max_tokens - self.overhead(role)
        prompt = self.recipe.query_prompt if role == "query" else self.recipe.document_prompt
        prepared = []
        for index, (text, tokens) in enumerate(zip(texts, self.offsets(texts), strict=True)):
            if len(tokens) > remaining and not truncate:
                raise TextTooLong(index, len(tokens) + self.overhead(role), self.max_tokens)
            kept = text if len(tokens) <= remaining else text[: int(tokens[remaining - 1, 1])]
            prepared.append(prompt + kept)
        return prepared

    def _batches(self, order: Sequence[int], texts: Sequence[str]) -> list[list[int]]:
        batches: list[list[int]] = []
        characters = 0
        for index in order:
            characters += len(texts[index])
            if not batches or len(batches[-1]) >= self._batch_texts or characters > BATCH_CHARACTERS:
                batches.append([])
                characters = len(texts[index])
            batches[-1].append(index)
        return batches

    def _embed(self, batch: Sequence[int], texts: Sequence[str], role: Role, truncate: bool) -> Vector:
        """Return the rows of texts, given by their positions. If a request is rejected, smaller requests are sent."""
        asked = [texts[index] for index in batch]
        try:
            if role == "query":
                return self._kept(self._ask(asked, role, QUERY_SECONDS))
            answered = self._ask([*asked, PROBE], role, DOCUMENT_SECONDS)
            self.require_probe(answered[-1:])
            return self._kept(answered[:-1])
        except Rejected as rejected:
            if len(batch) == 1:
                return self._rejected(batch[0], texts, role, truncate, rejected)
            half = (len(batch) + 1) // 2
            halves = [self._embed(part, texts, role, truncate) for part in (batch[:half], batch[half:])]
            self._batch_texts = min(self._batch_texts, half)  # It was the number of texts, and not one of them.
            return np.concatenate(halves)

    def _rejected(self, index: int, texts: Sequence[str], role: Role, truncate: bool, rejected: Rejected) -> Vector:
        """Return the row of a single text that was rejected. The text is shortened if this is allowed."""
        if not _TOO_LONG.search(rejected.answer):
            raise rejected
        text = texts[index]
        if truncate and len(text) > 16:
            return self._embed([0], [text[: len(text) * 3 // 4]], role, truncate)
        (tokens,) = self.offsets([text])
        over = max(8, self.max_tokens // 8)
        raise TextTooLong(index, max(len(tokens), self.max_tokens) + over, self.max_tokens) from rejected

    def _ask(self, texts: Sequence[str], role: Role, seconds: float) -> Vector:
        """Return the endpoint's vectors. They must have the width of its first vectors."""
        members = {"input_type": role} if self._remote.input_type else None
        answered = self._endpoint.embed(texts, seconds=seconds, members=members)
        if answered.shape[1] != self._width:
            raise RecipeMismatch(
                Message(
                    f"the endpoint {self._endpoint.address} gave vectors of {answered.shape[1]} dimensions and not of "
                    f"{self._width}, as the index has: start it with the index's model, or rebuild the index",
                    " (--rebuild)",
                )
            )
        return answered

    def _kept(self, answered: Vector) -> Vector:
        """Return unit rows of the recipe's width; a text that the model cannot read has a row of zeros."""
        return _unit_rows(answered[:, : self.recipe.dimensions])

    def require_probe(self, answered: Vector) -> None:
        """Raise RecipeMismatch unless this row (1, width) of the probe text comes from the recipe's model."""
        cosine = self._remote.cosine(Remote(_packed(self._kept(answered)[0])))
        if cosine < MIN_PROBE_COSINE:
            raise RecipeMismatch(
                Message(
                    f"the endpoint {self._endpoint.address} answers with another model than the vectors were made "
                    f"with: the vectors of a probe text have the cosine {cosine:.3f}, and one model gives "
                    f"{MIN_PROBE_COSINE} or more; start it with that model, or rebuild the index with the new one",
                    " (--rebuild)",
                )
            )
        self._verified = time.monotonic()


def connect(spec: RecipeSpec, runtime: Runtime | None = None) -> RemoteEncoder:
    """Return the encoder of a new recipe, after asking the endpoint for the vector of the probe text.

    Raises:
        EndpointUnavailable: the endpoint cannot be reached.
        ModelError: this user has not named the host, the spec has no token limit or asks for something that an endpoint
            cannot do, or the endpoint answers with something other than vectors.
    """
    address = EndpointAddress.parse(spec.model)
    if spec.pooling or spec.layers:
        raise ModelError(f"{address}: an endpoint pools by itself: leave pooling and layers out")
    if runtime is not None and (runtime.precision, runtime.device, runtime.name) != ("auto", "auto", "auto"):
        raise ModelError(f"{address}: an endpoint chooses precision, device and runtime by itself: leave them out")
    endpoint = Endpoint(address)
    if spec.max_tokens is None or spec.max_tokens < 1:
        raise ModelError(
            Message(
                f"{address}: an endpoint does not say how many tokens its model reads: give max_tokens=N",
                ", in the shell --max-tokens N of likewise index or migrate; other commands take no new endpoint",
            )
        )
    members = {"input_type": "document"} if spec.input_type else None
    probe = endpoint.embed([PROBE], seconds=PROBE_SECONDS, members=members)
    width = probe.shape[1]
    kept = width if spec.dimensions is None else spec.dimensions
    if not 0 < kept <= width:
        raise ModelError(f"model {spec.model!r} gives {width} dimensions: {kept} cannot be kept")
    row = _unit_rows(probe[:, :kept])[0]
    if not row.any():
        raise ModelError(f"model {spec.model!r} gave a vector of zeros for a plain sentence: it is broken")
    prompts = spec.query_prompt or "", spec.document_prompt or ""
    name, json = ("", "") if spec.tokenizer is None else _read_tokenizer(spec.tokenizer)
    sha256 = hashlib.sha256(json.encode()).hexdigest() if json else ""
    remote = Remote(_packed(row), name, sha256, spec.input_type)
    recipe = Recipe(
        str(address),
        remote.fingerprint,
        kept,
        spec.max_tokens,
        query_prompt=prompts[0],
        document_prompt=prompts[1],
        remote=remote,
    )
    return RemoteEncoder(recipe, endpoint, _counter(recipe, json), width)


def open_remote(recipe: Recipe) -> RemoteEncoder:
    """Return the encoder of a stored recipe, after comparing the endpoint's probe vector with the stored one.

    Raises:
        EndpointUnavailable: the endpoint cannot be reached.
        RecipeMismatch: the endpoint answers with another model.
        ModelError: this user has not named the host, or the tokenizer is not found or has changed.
    """
    remote = recipe.remote
    if remote is None or recipe.fingerprint != remote.fingerprint:
        raise ModelError(
            f"the recipe of {recipe.model!r:.200} was changed: its fingerprint does not match its probe vector; "
            "rebuild the index"
        )
    endpoint = Endpoint(EndpointAddress.parse(recipe.model))
    json = ""
    if remote.tokenizer:
        _, json = _read_tokenizer(remote.tokenizer)
        if hashlib.sha256(json.encode()).hexdigest() != remote.tokenizer_sha256:
            raise RecipeMismatch(
                Message(
                    f"the tokenizer {remote.tokenizer} is not the one that the index was cut with: restore it, or "
                    "rebuild the index",
                    " (--rebuild)",
                )
            )
    members = {"input_type": "document"} if remote.input_type else None
    probe = endpoint.embed([PROBE], seconds=PROBE_SECONDS, members=members)
    encoder = RemoteEncoder(recipe, endpoint, _counter(recipe, json), probe.shape[1])
    encoder.require_probe(probe)
    return encoder


def _counter(recipe: Recipe, tokenizer_json: str) -> Counter:
    if not tokenizer_json:
        return CharacterCounter(recipe.query_prompt, recipe.document_prompt)
    from indexer.encoders.tokens.tokenizer import Tokenizer

    return Tokenizer(tokenizer_json, recipe.max_tokens, recipe.query_prompt, recipe.document_prompt)


def _read_tokenizer(name: str) -> tuple[str, str]:
    """Return the name by which a tokenizer is found from any folder, and the text of its tokenizer.json."""
    path = find_tokenizer(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}): name a tokenizer.json") from error
    return (str(path.absolute()) if path.name == name.rpartition("/")[2] else lasting_name(name)), text


def tokenizer_sha256(name: str) -> str:
    """Return the sha256 of a tokenizer, by its name or path. Raises ModelError if there is none."""
    return hashlib.sha256(_read_tokenizer(name)[1].encode()).hexdigest()


def _unit_rows(rows: Vector) -> Vector:
    """Return rows of unit length; rows of zeros stay zeros."""
    wide = rows.astype(np.float64)  # Squares of large float32 would overflow.
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return (wide / np.where(norms > 0, norms, 1)).astype(np.float32)


def _packed(row: Vector) -> str:
    return struct.pack(f"<{len(row)}e", *row.tolist()).hex()
