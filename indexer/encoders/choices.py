"""The runtimes chosen on this machine: what a choice depends on, and the file in the user's cache that keeps them.

Imports neither torch nor OpenVINO. fastest.py decides what is chosen.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from indexer.encoders.cache import cache_folder
from indexer.encoders.hardware import cores, cpu_features, cpu_name
from indexer.encoders.recipe import Recipe
from indexer.encoders.runtime import RUNTIME_NAMES, RuntimeName
from indexer.errors import BadInput, ModelError

RUNTIME_VARIABLE = "LIKEWISE_RUNTIME"
"""Environment variable that takes the place of the measured choice."""

MAX_CHOICES = 500
"""Choices kept in the file, the newest ones."""

CHOICE_LIFETIME, SHORT_LIFETIME = timedelta(days=30), timedelta(days=1)
"""How long a choice counts: the machine's other work, its firmware and its cooling change; one that was not clear, or
not finished, is soon tried again."""

_FORMAT = 2
"""Version of the file and of the way of measuring; a file with another one is ignored."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything that a choice depends on.

    Attributes:
        model: identity of the recipe without its post-processing and its number of dimensions.
        precision: as the caller asked for it.
        cpu, features: name of the CPU and its instructions that matter (hardware.py).
        cores: that this process may use.
        threads: of torch.
        torch, openvino: versions.
    """

    model: str
    precision: str
    cpu: str
    features: str
    cores: int
    threads: int
    torch: str
    openvino: str

    @classmethod
    def here(cls, recipe: Recipe, precision: str, threads: int) -> Conditions:
        """The conditions in this process."""
        plain = replace(recipe, post=None, post_sha256="", dimensions=0)
        machine = cpu_name(), cpu_features(), cores()
        return cls(plain.identity, precision, *machine, threads, version("torch"), version("openvino"))


@dataclass(frozen=True, slots=True)
class Choice:
    """The runtime that embeds documents under some conditions.

    Attributes:
        chosen: "torch" or "openvino".
        tokens_per_second: of each runtime that was measured; empty if only torch can run the model.
        reason: why OpenVINO cannot be used, or "".
        measured, expires: date and time in UTC, ISO 8601.
        finished: False from when a measurement begins: one that is killed leaves torch.
    """

    conditions: Conditions
    chosen: RuntimeName
    tokens_per_second: dict[str, float]
    reason: str
    measured: str
    expires: str
    finished: bool = True

    @classmethod
    def made(
        cls,
        conditions: Conditions,
        chosen: RuntimeName,
        tokens_per_second: dict[str, float] | None = None,
        reason: str = "",
        *,
        kept: timedelta = CHOICE_LIFETIME,
        finished: bool = True,
    ) -> Choice:
        """A choice of this moment."""
        at = now()
        times = at.isoformat(timespec="seconds"), (at + kept).isoformat(timespec="seconds")
        return cls(conditions, chosen, tokens_per_second or {}, reason, *times, finished)

    @classmethod
    def from_json(cls, fields: Any) -> Choice:
        """Raises TypeError, ValueError, KeyError or OverflowError for anything else than `asdict` gave."""
        choice = cls(**{**fields, "conditions": Conditions(**fields["conditions"])})
        when = choice.conditions
        words = when.model, when.precision, when.cpu, when.features, when.torch, when.openvino, choice.reason
        if not all(isinstance(word, str) for word in (*words, choice.measured, choice.expires)):
            raise TypeError("a field is not a string")
        if not all(type(count) is int for count in (when.cores, when.threads)) or type(choice.finished) is not bool:
            raise TypeError("a field is not a whole number, or true or false")
        if not all(datetime.fromisoformat(moment).tzinfo for moment in (choice.measured, choice.expires)):
            raise ValueError("a date has no time zone")
        speeds = choice.tokens_per_second
        if speeds.keys() not in ({*()}, {"torch", "openvino"}):
            raise ValueError(f"speeds of {list(speeds)}")
        if not all(math.isfinite(speed) and speed > 0 for speed in speeds.values()):
            raise ValueError("a speed is no positive number")
        if choice.chosen != "torch" and (choice.chosen != "openvino" or not speeds or not choice.finished):
            raise ValueError(f"chosen is {choice.chosen!r}")
        return choice

    @property
    def counts(self) -> bool:
        """Whether it has not expired."""
        return now() < datetime.fromisoformat(self.expires)


def now() -> datetime:
    return datetime.now(UTC)


def override() -> RuntimeName:
    """The runtime that LIKEWISE_RUNTIME asks for, or "auto".

    Raises:
        BadInput: another word than torch, openvino or auto.
    """
    word = os.environ.get(RUNTIME_VARIABLE) or "auto"
    for runtime in RUNTIME_NAMES:
        if word == runtime:
            return runtime
    raise BadInput(f"{RUNTIME_VARIABLE} is {word!r}: set it to {', '.join(RUNTIME_NAMES)}, or remove it")


def saved_choice(recipe: Recipe, precision: str | None = None) -> Choice | None:
    """The newest choice for a recipe on this machine, for any number of threads; None as precision means any, too."""
    try:
        here = Conditions.here(recipe, "", 0)
    except ImportError:  # Without OpenVINO there is nothing to choose.
        return None
    same = [
        choice
        for choice in _read(choices_file())
        if choice.counts
        and replace(choice.conditions, precision="", threads=0) == here
        and precision in (None, choice.conditions.precision)
    ]
    return max(same, key=lambda choice: choice.measured, default=None)


@dataclass(frozen=True, slots=True)
class RuntimeInUse:
    """The runtime that embeds many documents of a recipe on this machine, and why; for people and programs to read.

    Attributes:
        decided_by: "measurement", or "LIKEWISE_RUNTIME": then the fields below are empty.
        precision: that was asked for when it was measured.
        tokens_per_second, reason, measured: as of `Choice`.
    """

    chosen: RuntimeName
    decided_by: str
    precision: str = ""
    tokens_per_second: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    cpu: str = ""
    threads: int = 0
    measured: str = ""


def runtime_in_use(recipe: Recipe, precision: str | None = None) -> RuntimeInUse | None:
    """What LIKEWISE_RUNTIME says, or the newest choice for a recipe on this machine; None if nothing was measured.

    LIKEWISE_RUNTIME does not say openvino for what only torch can run.
    """
    asked = override()
    if asked == "torch":
        return RuntimeInUse(asked, RUNTIME_VARIABLE)
    if recipe.post:  # Its choice would be that of the recipe without.
        return None
    choice = saved_choice(recipe, precision)
    refused = choice is not None and choice.finished and bool(choice.reason)
    if asked == "openvino" and not refused:
        return RuntimeInUse(asked, RUNTIME_VARIABLE) if leaves_torch(recipe) else None
    if choice is None:
        return None
    when, outcome = choice.conditions, (choice.tokens_per_second, choice.reason)
    return RuntimeInUse(choice.chosen, "measurement", when.precision, *outcome, when.cpu, when.threads, choice.measured)


def leaves_torch(recipe: Recipe) -> bool:
    """Whether another runtime may embed documents of a recipe: of a transformer whose modules are all known."""
    if recipe.pooling is not None:
        return True
    from indexer.encoders.locate import find_model
    from indexer.encoders.torch.pooling_head import read_head

    try:
        return read_head(find_model(recipe.model), 0) is not None
    except ModelError:  # It is not here, and nothing is embedded with it.
        return False


def choices_file() -> Path:
    """Where the user's choices are kept. Its folder may not exist yet."""
    return cache_folder() / "runtimes.json"


def find_choice(file: Path, conditions: Conditions) -> Choice | None:
    """The choice that was saved under these conditions and has not expired."""
    return next((choice for choice in _read(file) if choice.conditions == conditions and choice.counts), None)


def _read(file: Path) -> list[Choice]:
    """The choices in the file; none if it is missing, of another version or not what was written."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return [Choice.from_json(each) for each in content["choices"]] if content["version"] == _FORMAT else []
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return []


def save_choice(file: Path, choice: Choice) -> None:
    """Add a choice and replace the file as a whole: a reader finds the old content or the new one."""
    others = [each for each in _read(file) if each.conditions != choice.conditions]
    _write(file, sorted([*others, choice], key=lambda each: each.measured)[-MAX_CHOICES:])


def drop_choice(file: Path, conditions: Conditions) -> None:
    """Forget a choice, and every other one if the file cannot be written: they can be measured again."""
    try:
        _write(file, [each for each in _read(file) if each.conditions != conditions])
    except OSError:
        file.unlink(missing_ok=True)


def _write(file: Path, choices: list[Choice]) -> None:
    content = json.dumps({"version": _FORMAT, "choices": [asdict(each) for each in choices]}, indent=1)
    descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        os.close(descriptor)
        Path(draft).write_text(content, encoding="utf-8")
        Path(draft).replace(file)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


@contextmanager
def only_process(file: Path) -> Iterator[None]:
    """Measure in one process at a time: two would slow one another, and overwrite one another's choices.

    Raises:
        BlockingIOError: another process is measuring.
    """
    import fcntl

    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # It ends with the process, however that ends.
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # A child that was forked meanwhile has the file open as well.
