"""Search tests: reading a file of questions with the documents they must find, and finding the expectations that fail.

The file is YAML: a list of questions, each with the expectations of its ranking.

    - question: how can I stop my bread from going stale
      top 3: bread-storage
      above: [bread-storage, bread-history]
      not in top 10: stars-supernova
      where: lang = "en"
      mode: dense
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from indexer.errors import BadInput
from search.query import Mode

Kind = Literal["top", "absent", "above"]

_TOP = re.compile(r"(not in )?top ([1-9]\d*)")
_ABOVE_HITS = 100
"""Number of hits that are searched for the documents of "above", which has no number of its own."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One condition that a ranking must meet.

    Attributes:
        kind: "top" (every uri is among the first `depth`), "absent" (none is), "above" (uris in this order).
        line: the line of the file, for messages.
    """

    kind: Kind
    uris: tuple[str, ...]
    depth: int
    line: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its expectations; `place` is "FILE: question N"."""

    place: str
    text: str
    expectations: tuple[Expectation, ...]
    where: str | None = None
    mode: Mode = "dense"

    @property
    def depth(self) -> int:
        return max(expectation.depth for expectation in self.expectations)


@dataclass(frozen=True, slots=True)
class BrokenExpectation:
    """An expectation that does not hold.

    Attributes:
        ranks: rank of each of its uris, counted from 1; None for a uri that is not among the hits.
        hits: uris of the hits, best first.
    """

    question: Question
    expectation: Expectation
    ranks: tuple[int | None, ...]
    hits: tuple[str, ...]


def read_expectations(path: str | Path) -> list[Question]:
    """Read a file of expectations.

    Raises:
        BadInput: it cannot be read, is not YAML, or has a question or key that is not understood.
    """
    import yaml  # type: ignore[import-untyped, unused-ignore]

    class Loader(yaml.BaseLoader):  # type: ignore[misc, unused-ignore]
        """Reads everything as text, because YAML reads 010 as 8, and refuses a repeated key, which YAML allows."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for index, key in enumerate(keys):
                if key in keys[:index]:
                    raise BadInput(f"{path}:{node.start_mark.line + 1}: {key!r} comes twice: make one list of it")
            return super().construct_mapping(node, deep)

    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{path}: cannot be read ({' '.join(str(error).split())}): write YAML in UTF-8") from error
    if not isinstance(content, list) or not content:
        raise BadInput(f"{path}: is not a list of questions: begin each with '- question: ...'")
    return [_question(f"{path}: question {number}", item) for number, item in enumerate(content, 1)]


def _question(place: str, item: Any) -> Question:
    if not isinstance(item, dict) or not isinstance(item.get("question"), str) or not item["question"].strip():
        raise BadInput(f"{place}: has no text: write it as '- question: ...'")
    settings = {name: item[name] for name in ("where", "mode") if name in item}
    for name, value in settings.items():
        if not isinstance(value, str) or not value.strip() or (name == "mode" and value not in get_args(Mode)):
            raise BadInput(f"{place}: its {name} {value!r} is not a {name}")
    rest = {key: value for key, value in item.items() if key not in ("question", "where", "mode")}
    expectations = tuple(_expectation(place, str(key), value) for key, value in rest.items())
    if not expectations:
        raise BadInput(f"{place}: expects nothing: add a line such as 'top 3: URI'")
    return Question(place, item["question"], expectations, **settings)


def _expectation(place: str, key: str, value: Any) -> Expectation:
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(uri, str) and uri not in ("", "~", "null") for uri in values):
        raise BadInput(f"{place}: {key!r} needs a uri, or a list of uris")
    uris = tuple(values)
    line = f"{key}: {', '.join(uris)}"
    if key == "above":
        if len(set(uris)) < 2:
            raise BadInput(f"{place}: 'above' needs two or more uris, the best one first")
        return Expectation("above", uris, _ABOVE_HITS, line)
    if (match := _TOP.fullmatch(key)) is None:
        raise BadInput(f"{place}: {key!r} is not one of 'top N', 'not in top N', 'above', 'where' and 'mode'")
    return Expectation("absent" if match[1] else "top", uris, int(match[2]), line)


def broken_expectations(
    questions: Sequence[Question],
    ask: Callable[[Question], Sequence[str]],
    as_stored: Callable[[Sequence[str]], Sequence[str]],
) -> Iterator[BrokenExpectation]:
    """Yield the expectations that do not hold.

    Args:
        ask: returns the uris of the best `question.depth` hits.
        as_stored: function that turns uris of the file into uris of the index.
    """
    for question in questions:
        hits = tuple(ask(question))
        rank = {uri: number for number, uri in enumerate(hits, 1)}
        for expectation in question.expectations:
            ranks = tuple(rank.get(uri) for uri in as_stored(expectation.uris))
            if not _holds(expectation, ranks):
                yield BrokenExpectation(question, expectation, ranks, hits)


def _holds(expectation: Expectation, ranks: Sequence[int | None]) -> bool:
    within = [rank is not None and rank <= expectation.depth for rank in ranks]
    if expectation.kind == "absent":
        return not any(within)
    if expectation.kind == "top":
        return all(within)
    # A document that was not found counts as below all that were. The first one must have been found.
    order = [float("inf") if rank is None else rank for rank in ranks]
    return within[0] and all(above < below for above, below in pairwise(order))
