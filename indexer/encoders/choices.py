"""The runtimes chosen on this machine: what a choice depends on, and the file in the user's cache that keeps them.

Imports neither torch nor OpenVINO. What is chosen, runtime.py decides.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from indexer.encoders.cache import cache_folder
from indexer.encoders.hardware import cores, cpu_features, cpu_name
from indexer.encoders.recipe import Recipe
from indexer.errors import BadInput

Runtime = Literal["auto", "torch", "openvino"]

RUNTIMES: tuple[Runtime, ...] = "auto", "torch", "openvino"

VARIABLE = "LIKEWISE_RUNTIME"
"""Environment variable that takes the place of the measured choice."""

MAX_CHOICES = 500
"""Choices kept in the file, the newest ones."""

_FORMAT = 1
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
        measured: date and time in UTC, ISO 8601.
    """

    conditions: Conditions
    chosen: Runtime
    tokens_per_second: dict[str, float]
    reason: str
    measured: str

    @classmethod
    def from_json(cls, fields: Any) -> Choice:
        """Raises TypeError, ValueError or KeyError for anything else than `asdict` gave."""
        choice = cls(**{**fields, "conditions": Conditions(**fields["conditions"])})
        speeds = choice.tokens_per_second
        if choice.chosen not in ("torch", "openvino") or not isinstance(choice.reason, str):
            raise ValueError(f"chosen is {choice.chosen!r}")
        if not all(isinstance(value, str) for value in (choice.measured, choice.conditions.cpu)):
            raise TypeError("the date or the CPU is not a string")
        if not all(isinstance(speed, int | float) for speed in speeds.values()):
            raise TypeError("a speed is not a number")
        return choice


def override() -> Runtime:
    """The runtime that LIKEWISE_RUNTIME asks for, or "auto".

    Raises:
        BadInput: another word than torch, openvino or auto.
    """
    word = os.environ.get(VARIABLE) or "auto"
    for runtime in RUNTIMES:
        if word == runtime:
            return runtime
    raise BadInput(f"{VARIABLE} is {word!r}: set it to {', '.join(RUNTIMES)}, or remove it")


def saved_choice(recipe: Recipe, precision: str | None = None) -> Choice | None:
    """The newest choice for a recipe on this machine, for any number of threads; None as precision means any, too."""
    here = Conditions.here(recipe, "", 0)
    same = [
        choice
        for choice in _read(choices_file())
        if replace(choice.conditions, precision="", threads=0) == here
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

    chosen: Runtime
    decided_by: str
    precision: str = ""
    tokens_per_second: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    cpu: str = ""
    threads: int = 0
    measured: str = ""


def runtime_in_use(recipe: Recipe, precision: str | None = None) -> RuntimeInUse | None:
    """What LIKEWISE_RUNTIME says, or the newest choice for a recipe on this machine; None if nothing was measured."""
    if (asked := override()) != "auto":
        return RuntimeInUse(asked, VARIABLE)
    if (choice := saved_choice(recipe, precision)) is None:
        return None
    when, outcome = choice.conditions, (choice.tokens_per_second, choice.reason)
    return RuntimeInUse(choice.chosen, "measurement", when.precision, *outcome, when.cpu, when.threads, choice.measured)


def choices_file() -> Path:
    """Where the user's choices are kept. Its folder may not exist yet."""
    return cache_folder() / "runtimes.json"


def find_choice(file: Path, conditions: Conditions) -> Choice | None:
    return next((choice for choice in _read(file) if choice.conditions == conditions), None)


def _read(file: Path) -> list[Choice]:
    """The choices in the file; none if it is missing, of another version or not what was written."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return [Choice.from_json(each) for each in content["choices"]] if content["version"] == _FORMAT else []
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


def save_choice(file: Path, choice: Choice) -> None:
    """Add a choice and replace the file as a whole: a reader finds the old content or the new one."""
    others = [each for each in _read(file) if each.conditions != choice.conditions]
    newest = sorted([*others, choice], key=lambda each: each.measured)[-MAX_CHOICES:]
    content = json.dumps({"version": _FORMAT, "choices": [asdict(each) for each in newest]}, indent=1)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=f".{file.name}-", delete=False) as draft:
        draft.write(content)
    try:
        Path(draft.name).replace(file)
    except OSError:
        Path(draft.name).unlink(missing_ok=True)
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
        yield
