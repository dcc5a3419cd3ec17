"""The runtimes chosen on this machine: the conditions of each choice, and the file in the user's cache.

Imports neither torch nor OpenVINO. fastest.py decides what is chosen.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from indexer.encoders.cache import cache_folder
from indexer.encoders.hardware import cores, cpu_features, cpu_name
from indexer.encoders.recipe import Recipe
from indexer.encoders.runtime import RUNTIME_NAMES, RuntimeName
from indexer.errors import BadInput

RUNTIME_VARIABLE = "LIKEWISE_RUNTIME"
"""Environment variable that replaces the measured choice."""

MAX_CHOICES = 500
"""Number of choices that the file keeps: the newest ones."""

CHOICE_LIFETIME = timedelta(days=30)
"""How long a choice is used: after that, the machine's other work, its firmware or its cooling may have changed."""

SHORT_LIFETIME = timedelta(days=1)
"""How long a choice is used whose measurement was not clear, or did not finish."""

_FORMAT = 2
"""Version of the file and of the method of measuring. A file of another version is ignored."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything that a choice of runtime depends on.

    Attributes:
        model: identity of the recipe, without its post-processing and its number of dimensions.
        precision: the one that the caller named, or `auto`.
        cpu, features: name of the CPU, and which of the relevant instructions it has (hardware.py).
        cores: how many this process may use.
        threads: how many torch uses.
        torch, openvino: versions of the libraries.
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
        """Return the conditions of this process. Raises ImportError if a library is not installed."""
        plain = replace(recipe, post=None, post_sha256="", dimensions=0)
        machine = cpu_name(), cpu_features(), cores()
        return cls(plain.identity, precision, *machine, threads, version("torch"), version("openvino"))


@dataclass(frozen=True, slots=True)
class Choice:
    """The runtime that embeds documents under some conditions.

    Attributes:
        chosen: "torch" or "openvino".
        tokens_per_second: speed of each runtime that was measured; empty if only torch can run the model.
        reason: why OpenVINO cannot be used, or "".
        measured, expires: date and time in UTC, ISO 8601.
        finished: False while a measurement runs. A process that is killed leaves such a choice behind, for torch.
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
        """Return a choice that is measured now and expires after `kept`."""
        measured = now()
        times = measured.isoformat(timespec="seconds"), (measured + kept).isoformat(timespec="seconds")
        return cls(conditions, chosen, tokens_per_second or {}, reason, *times, finished)

    @classmethod
    def from_json(cls, fields: Any) -> Choice:
        """Read what `asdict` gave.

        Raises:
            TypeError, ValueError, KeyError, OverflowError: it is anything else.
        """
        choice = cls(**{**fields, "conditions": Conditions(**fields["conditions"])})
        given = choice.conditions
        texts = given.model, given.precision, given.cpu, given.features, given.torch, given.openvino, choice.reason
        if not all(isinstance(text, str) for text in (*texts, choice.measured, choice.expires)):
            raise TypeError("a field is not a string")
        if not all(type(count) is int for count in (given.cores, given.threads)) or type(choice.finished) is not bool:
            raise TypeError("a field is not a whole number, or true or false")
        if not all(datetime.fromisoformat(moment).tzinfo for moment in (choice.measured, choice.expires)):
            raise ValueError("a date has no time zone")
        speeds = choice.tokens_per_second
        if speeds.keys() not in ({*()}, {"torch", "openvino"}):
            raise ValueError(f"speeds of {list(speeds)}")
        if not all(math.isfinite(speed) and speed > 0 for speed in speeds.values()):
            raise ValueError("a speed is not a positive number")
        if choice.chosen != "torch" and (choice.chosen != "openvino" or not speeds or not choice.finished):
            raise ValueError(f"chosen is {choice.chosen!r}")
        return choice

    @property
    def counts(self) -> bool:
        """Whether the choice has not expired."""
        return now() < datetime.fromisoformat(self.expires)


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def override() -> RuntimeName:
    """Return the runtime that LIKEWISE_RUNTIME names, or "auto".

    Raises:
        BadInput: it names something else than torch, openvino or auto.
    """
    word = os.environ.get(RUNTIME_VARIABLE) or "auto"
    for runtime in RUNTIME_NAMES:
        if word == runtime:
            return runtime
    raise BadInput(f"{RUNTIME_VARIABLE} is {word!r}: set it to {', '.join(RUNTIME_NAMES)}, or remove it")


def saved_choice(recipe: Recipe, precision: str | None = None) -> Choice | None:
    """Return the newest choice for a recipe on this machine, for any number of threads.

    Args:
        precision: the one to look for; None for any.
    """
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


def choices_file() -> Path:
    """Return the path of the file with the user's choices. Its folder may not exist yet."""
    return cache_folder() / "runtimes.json"


def find_choice(file: Path, conditions: Conditions) -> Choice | None:
    """Return the choice that was saved under these conditions and has not expired."""
    return next((choice for choice in _read(file) if choice.conditions == conditions and choice.counts), None)


def _read(file: Path) -> list[Choice]:
    """Return the choices in the file; none if it is missing, damaged or of another version."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return [Choice.from_json(each) for each in content["choices"]] if content["version"] == _FORMAT else []
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return []


def save_choice(file: Path, choice: Choice) -> None:
    """Add a choice. The file is replaced as a whole, so that a reader sees the old content or the new one."""
    others = [each for each in _read(file) if each.conditions != choice.conditions]
    _write(file, sorted([*others, choice], key=lambda each: each.measured)[-MAX_CHOICES:])


def drop_choice(file: Path, conditions: Conditions) -> None:
    """Remove a choice; if the file cannot be written, remove all of them: they can be measured again."""
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
    """Let only one process measure at a time: two would slow each other down and overwrite each other's choices.

    Raises:
        BlockingIOError: another process is measuring.
    """
    import fcntl

    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Released when the process ends, however it ends.
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # A child forked in the meantime also has the file open.
