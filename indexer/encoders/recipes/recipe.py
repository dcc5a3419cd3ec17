"""Recipes: what vectors mean. A `Recipe` is stored in an index, a `RecipeSpec` is what a person writes.

How vectors are computed (runtime, precision, device) is not part of a recipe: see runtime.py. Loading is in load.py.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import struct
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Literal, cast, get_args

from indexer.errors import ModelError

Pooling = Literal["cls", "mean", "max", "mean_sqrt_len", "weighted_mean", "last", "pooler"]
Combine = Literal["mean", "sum", "concat"]

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
COMBINES: tuple[Combine, ...] = get_args(Combine)
OWN = "own"

MIN_PROBE_COSINE = 0.99
"""Minimum cosine between two vectors of the probe text from the same model behind an endpoint.

Measured with all-MiniLM-L6-v2 against float32: bfloat16 in a mixed batch gives 0.99996 and eight-bit weights 0.9967. A
server that puts a prompt before each text gives 0.985 or less, other pooling 0.55, and another model about 0.
"""


PROBE = (
    "The lighthouse keeper counted 47 ships before dawn; each carried letters, spices and one quiet rumour about the "
    "new harbour tax."
)
"""An index records the vector of this text, and two machines compare their models by it. The text must never change:
every index behind an endpoint would be refused."""

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)


def scheme_of(model: str) -> str:
    """Return the scheme of a model's name in lower case, such as `http` of http://HOST/v1#NAME; empty for a folder and
    for the name of a model on the hub."""
    scheme = _SCHEME.match(model)
    return scheme[1].lower() if scheme else ""


@dataclass(frozen=True, slots=True)
class Remote:
    """The part of a stored recipe that recognises a model behind an endpoint and cuts its texts.

    Attributes:
        probe: the unit vector of the probe text: little-endian float16, as hexadecimal digits.
        tokenizer: name or path of the tokenizer that cuts passages; empty if they are cut by characters.
        tokenizer_sha256: sha256 of the tokenizer.json; empty if passages are cut by characters.
        input_type: whether requests say `"input_type": "query"` or `"document"`.
    """

    probe: str
    tokenizer: str = ""
    tokenizer_sha256: str = ""
    input_type: bool = False

    @property
    def fingerprint(self) -> str:
        """sha256 over everything that decides vectors and passages. Only the tokenizer's name is left out."""
        fields = [self.probe, self.tokenizer_sha256, self.input_type]
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()

    @property
    def vector(self) -> tuple[float, ...]:
        """The vector of the probe text. Raises ModelError if it cannot be read."""
        try:
            packed = bytes.fromhex(self.probe)
            return struct.unpack(f"<{len(packed) // 2}e", packed)
        except (ValueError, struct.error) as error:
            raise ModelError(f"the recipe's probe vector cannot be read ({error}): restore the index") from error

    def cosine(self, other: Remote) -> float:
        """Return the cosine between both vectors of the probe text; 0 if the vectors differ in width."""
        ours, theirs = self.vector, other.vector
        length = math.hypot(*ours) * math.hypot(*theirs)
        if len(ours) != len(theirs) or not length:
            return 0.0
        return math.fsum(a * b for a, b in zip(ours, theirs, strict=True)) / length


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what a vector means. Vectors of two recipes may be mixed only if `same` is true.

    Attributes:
        model: name or path of the model as the user wrote it; not part of the identity.
        fingerprint: sha256 over the model's weights, tokenizer and configuration files.
        dimensions: dimensions of a vector. If the model gives more, the leading dimensions are kept (Matryoshka).
        max_tokens: maximum tokens of one text, special tokens and prompt counted.
        layers: hidden layers that are pooled, 0 is the embedding layer; () if `pooling` is None.
        combine: how several layers become one; concatenation is in the order of `layers`.
        pooling: how the vectors of tokens become one; None for the model's own modules (SBERT).
        query_prompt, document_prompt: text put before each text of that role.
        normalize: whether rows have unit length; always true so far.
        remote: of a model behind an endpoint, whose fingerprint is then that of this value; None for a model on this
            machine.
        question: the recipe of the part of a Router that embeds questions; None for any other model.
        route: `query` or `document`, the part of a Router that embeds; empty for any other model.
    """

    model: str
    fingerprint: str
    dimensions: int
    max_tokens: int
    layers: tuple[int, ...] = ()
    combine: Combine = "mean"
    pooling: Pooling | None = None
    query_prompt: str = ""
    document_prompt: str = ""
    normalize: bool = True
    remote: Remote | None = None
    question: Recipe | None = None
    route: str = ""

    @property
    def identity(self) -> str:
        """16 hex digits of the sha256 over all fields except `model` and `remote`. The sha256 of `remote` is the
        fingerprint. Only the recipe of a Router has `question` and `route` among them."""
        return _identity(self)

    @property
    def for_questions(self) -> Recipe:
        """The recipe of the vectors of questions."""
        return self.question or self

    @property
    def for_documents(self) -> Recipe:
        """The recipe of the vectors of documents alone."""
        return self if self.question is None else dataclasses.replace(self, question=None)

    def same(self, other: Recipe) -> bool:
        """Return whether vectors of both recipes may be mixed. Unlike `==`, this does not compare the model's name.

        An endpoint does not give exactly the same probe vector every time, so two probe vectors are compared by their
        cosine.
        """
        if self.remote is None or other.remote is None or self.identity == other.identity:
            return self.identity == other.identity
        ours, theirs = self.remote, other.remote
        if (ours.tokenizer_sha256, ours.input_type) != (theirs.tokenizer_sha256, theirs.input_type):
            return False
        with_our_probe = dataclasses.replace(other, fingerprint=self.fingerprint)
        return self.identity == with_our_probe.identity and ours.cosine(theirs) >= MIN_PROBE_COSINE

    def to_json(self) -> str:
        """Return the recipe as a JSON object."""
        fields = dataclasses.asdict(self)
        if self.remote is None:
            del fields["remote"]  # Only recipes of models behind an endpoint have this member.
        if not self.route:
            del fields["route"]
        if self.question is None:
            del fields["question"]
        else:
            fields["question"] = json.loads(self.question.to_json())
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Read what `to_json` wrote. Raises ModelError for anything else."""
        try:
            fields = json.loads(text)
            fields["layers"] = tuple(fields["layers"])
            if fields.get("remote") is not None:
                fields["remote"] = Remote(**fields["remote"])
            if fields.get("question") is not None:
                fields["question"] = cls.from_json(json.dumps(fields["question"]))
            return cls(**fields)
        except (ValueError, TypeError, KeyError) as error:
            raise ModelError(f"this is not a recipe that likewise wrote: {text[:80]!r} ({error})") from error

    @staticmethod
    def parse(text: str) -> RecipeSpec:
        """Read a recipe as a person writes it; see `RecipeSpec.parse`."""
        return RecipeSpec.parse(text)

    def __str__(self) -> str:
        return str(RecipeSpec(self.model, self.pooling, self.layers, self.combine))


_ALWAYS_HASHED = {"post": None, "post_sha256": ""}
"""Members of every recipe's hash that no recipe has a field for. They stay, because stored indexes and caches have
identities with them: without them, every document would be embedded again."""


@cache  # asked for each document, and a dictionary of all fields takes longer than storing a passage
def _identity(recipe: Recipe) -> str:
    left_out = ("model", "remote", "question") if recipe.route else ("model", "remote", "question", "route")
    fields = {name: value for name, value in dataclasses.asdict(recipe).items() if name not in left_out}
    fields |= _ALWAYS_HASHED
    if recipe.question is not None:
        fields["question"] = recipe.question.identity
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class RecipeSpec:
    """A recipe as a person asks for it: the arguments of `load_encoder` as one value.

    Attributes: as in `Recipe`; None leaves the choice to the model. `tokenizer` is the name or path of the tokenizer
    that cuts passages for a model behind an endpoint; None cuts them by characters. `input_type` says whether the
    endpoint gets the role of texts, query or document, in its requests. `stored` says that the request is what an index
    was made with, and not what a person asks for; `fingerprint` is then that of the index's recipe.
    """

    model: str
    pooling: Pooling | None = None
    layers: tuple[int, ...] | None = None
    combine: Combine = "mean"
    max_tokens: int | None = None
    dimensions: int | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    tokenizer: str | None = None
    input_type: bool = False
    stored: bool = False
    route: str = ""
    fingerprint: str = ""

    @classmethod
    def parse(cls, text: str) -> RecipeSpec:
        """Read `MODEL[:POOLING[@LAYERS][+COMBINE][+DIMENSIONS]]`.

        POOLING is one of POOLINGS or `own` (the model's own modules); LAYERS is `-2`, `-4..-1` or `-4,-3,-2,-1`;
        COMBINE is mean, sum or concat; DIMENSIONS is a number. If the whole text is the path of a folder, it is that
        folder. A name with a scheme is the model as a whole, because names of models at an endpoint may contain colons:
        http://localhost:11434/v1#nomic-embed-text:latest.

        Raises:
            ModelError: a part has no meaning, or is given twice.
        """
        if not isinstance(text, str) or not text.strip():
            raise ModelError(f"recipe {text!r:.80} names no model: write MODEL:POOLING@LAYERS")
        model, colon, rest = text.rpartition(":")
        if scheme_of(text) or not colon or "/" in rest or "\\" in rest or Path(text).is_dir():
            return cls(text)
        if not model:
            raise ModelError(f"recipe {text!r} names no model: write MODEL:POOLING@LAYERS")
        first, *words = rest.split("+")
        pooling, at_sign, layers = first.partition("@")
        if pooling not in (*POOLINGS, OWN) or (pooling == OWN and at_sign):
            raise _nonsense(text, first, f"a pooling ({', '.join(POOLINGS)}), or {OWN} without layers")
        options: dict[str, str | int] = {}
        for word in words:
            kind, value = _word(text, word)
            if kind in options:
                raise ModelError(f"recipe {text!r} says {kind} twice: {options[kind]} and {value}")
            options[kind] = value
        return cls(
            model,
            pooling=None if pooling == OWN else cast("Pooling", pooling),
            layers=parse_layers(layers) if at_sign else None,
            combine=cast("Combine", options.get("combine", "mean")),
            dimensions=cast("int | None", options.get("dimensions")),
        )

    @classmethod
    def of(cls, model: str | PathLike[str] | RecipeSpec) -> RecipeSpec:
        """Return a request as it is, and read any other name as `parse` does."""
        return model if isinstance(model, RecipeSpec) else cls.parse(str(model))

    @classmethod
    def chosen(cls, model: str, pooling: str | None, layers: str | None, combine: str | None) -> RecipeSpec:
        """Return a recipe's text with the options of a command line; layers or combine without pooling mean `mean`."""
        spec = cls.parse(model)
        return dataclasses.replace(
            spec,
            pooling=cast("Pooling | None", pooling or spec.pooling or ("mean" if layers or combine else None)),
            layers=parse_layers(layers) if layers else spec.layers,
            combine=cast("Combine", combine or spec.combine),  # load_encoder refuses other names.
        )

    def with_prompts(self, query: str | None, document: str | None) -> RecipeSpec:
        """Return this request with the prompts that are given; None leaves a prompt as it is."""
        return dataclasses.replace(
            self,
            query_prompt=self.query_prompt if query is None else query,
            document_prompt=self.document_prompt if document is None else document,
        )

    def __str__(self) -> str:
        parts = [self.pooling or OWN]
        if self.layers:
            parts[0] += "@" + ",".join(map(str, self.layers))
            parts += [self.combine] if len(self.layers) > 1 else []
        parts += [str(self.dimensions)] if self.dimensions else []
        return self.model if parts == [OWN] else f"{self.model}:{'+'.join(parts)}"


def spec_of(recipe: Recipe) -> RecipeSpec:
    """Return the request that gives this recipe. It names neither route if the recipe has both routes of a Router."""
    return RecipeSpec(
        recipe.model,
        recipe.pooling,
        recipe.layers or None,
        recipe.combine,
        # Two limits are the models' own, because a request has one for both.
        max_tokens=recipe.max_tokens if recipe.for_questions.max_tokens == recipe.max_tokens else None,
        dimensions=recipe.dimensions,
        query_prompt=recipe.query_prompt,
        document_prompt=recipe.document_prompt,
        tokenizer=recipe.remote.tokenizer or None if recipe.remote else None,
        input_type=recipe.remote is not None and recipe.remote.input_type,
        stored=True,
        route=recipe.route if recipe.question is None else "",
        fingerprint=recipe.fingerprint,
    )


def parse_layers(text: str) -> tuple[int, ...]:
    """Return the numbers in `-2`, `-4..-1` (both ends included) or `-4,-3,-2,-1`.

    Raises:
        ModelError: the text is anything else.
    """
    if re.fullmatch(r"-?\d+(,-?\d+)*", text):
        return tuple(int(number) for number in text.split(","))
    if span := re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text):
        first, last = int(span[1]), int(span[2])
        if first <= last and (first < 0) == (last < 0):
            return tuple(range(first, last + 1))
    raise ModelError(f"layers {text!r} are not layers: write -1, -4..-1 or -4,-3,-2,-1 (0 is the embedding layer)")


def _word(text: str, word: str) -> tuple[str, str | int]:
    """Return the name of the setting that a word after a `+` sets, and the value."""
    if word in COMBINES:
        return "combine", word
    if word.isascii() and word.isdigit() and int(word) > 0:
        return "dimensions", int(word)
    raise _nonsense(text, word, f"one of {', '.join(COMBINES)} or a number of dimensions")


def _nonsense(text: str, part: str, wanted: str) -> ModelError:
    return ModelError(f"recipe {text!r}: {part!r} is not {wanted}; write MODEL:POOLING@LAYERS+COMBINE+DIMENSIONS")
