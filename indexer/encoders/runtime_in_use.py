"""The runtime that embeds the documents of a recipe on this machine, and the reason, for `likewise info`."""

from __future__ import annotations

from dataclasses import dataclass, field

from indexer.encoders.choices import RUNTIME_VARIABLE, override, saved_choice
from indexer.encoders.recipe import Recipe
from indexer.encoders.runtime import RuntimeName
from indexer.errors import ModelError


@dataclass(frozen=True, slots=True)
class RuntimeInUse:
    """The runtime that embeds many documents of a recipe on this machine, and the reason.

    Attributes:
        decided_by: "measurement", or "LIKEWISE_RUNTIME": then the fields below are empty.
        precision: the one that was requested when the runtimes were measured.
        tokens_per_second, reason, measured: as in `Choice`.
        cpu, threads: as in `Conditions`.
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
    """Return the runtime that LIKEWISE_RUNTIME names, or the newest choice for a recipe on this machine.

    Returns:
        None if nothing was measured, if the model is behind an endpoint, or if LIKEWISE_RUNTIME names openvino and only
        torch can run the recipe.
    """
    if recipe.remote is not None:
        return None
    named = override()
    if named == "torch":
        return RuntimeInUse(named, RUNTIME_VARIABLE)
    # The saved choice would be that of the recipe without its post-processing, which always runs on torch.
    if recipe.post:
        return None
    choice = saved_choice(recipe, precision)
    refused = choice is not None and choice.finished and bool(choice.reason)
    if named == "openvino" and not refused:
        return RuntimeInUse(named, RUNTIME_VARIABLE) if _can_leave_torch(recipe) else None
    if choice is None:
        return None
    measured_on = choice.conditions
    return RuntimeInUse(
        choice.chosen,
        "measurement",
        precision=measured_on.precision,
        tokens_per_second=choice.tokens_per_second,
        reason=choice.reason,
        cpu=measured_on.cpu,
        threads=measured_on.threads,
        measured=choice.measured,
    )


def _can_leave_torch(recipe: Recipe) -> bool:
    """Whether another runtime can run a recipe: it is a transformer, followed only by modules that likewise knows."""
    if recipe.pooling is not None:
        return True
    from indexer.encoders.locate import find_model
    from indexer.encoders.torch.pooling_head import read_head

    try:
        return read_head(find_model(recipe.model), 0) is not None
    except ModelError:  # Nothing can be embedded with a model that is not on this machine.
        return False
