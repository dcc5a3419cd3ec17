"""likewise model: what a model's files hold, without loading it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from search.cli.options import json_option
from search.cli.output import number, quiet_libraries, say, say_json

if TYPE_CHECKING:
    from indexer.encoders.inspection.model_card import ModelDescription


@click.command()
@click.argument("name", metavar="NAME|PATH")
@json_option
def model(name: str, as_json: bool) -> None:
    """Describe the model NAME: its layers, dimensions, limits and modules, and every parameter by name and shape.

    \b
    likewise model all-MiniLM-L6-v2
    likewise model ~/models/my-bert --json
    """
    from indexer.encoders.inspection.model_card import describe

    with quiet_libraries():
        found = describe(name)
    if as_json:
        said = asdict(found)
        said["files"] = [{"file": file, "bytes": size} for file, size in found.files]
        say_json({**said, "dtype": found.dtype, "total": found.total})
        return
    for label, value in _summary(found):
        say(f"{label:<12} {value}")
    say("")
    shapes = [" x ".join(map(number, parameter.shape)) or "1" for parameter in found.parameters]
    names = max((len(parameter.name) for parameter in found.parameters), default=0)
    width = max(map(len, shapes), default=0)
    for parameter, shape in zip(found.parameters, shapes, strict=True):
        say(f"{parameter.name:<{names}}  {shape:>{width}}  {number(parameter.count):>12}")


def _summary(found: ModelDescription) -> list[tuple[str, str]]:
    lacking = "none: it has no transformer, so no hidden layers to pool"
    layers = f"{found.layers}, and the embeddings as layer 0" if found.layers else lacking
    files = ", ".join(f"{file} ({size / 2**20:.1f} MB)" for file, size in found.files)
    many = len(found.parameters)
    rows: list[tuple[str, object]] = [
        ("model", found.model),
        ("folder", found.folder),
        ("files", files),
        ("fingerprint", found.fingerprint),
        ("kind", found.architecture),
        ("layers", layers),
        ("hidden size", found.hidden),
        ("heads", found.heads),
        ("vocabulary", found.vocabulary and number(found.vocabulary)),
        ("dimensions", found.dimensions),
        ("token limit", found.max_tokens),
        ("modules", ", ".join(found.modules) or "none of its own: a bare transformer, averaged where nothing is asked"),
        ("pooling", ", ".join(found.pooling)),
        ("prompts", ", ".join(filter(None, [
            found.query_prompt and f"{found.query_prompt!r} before queries",
            found.document_prompt and f"{found.document_prompt!r} before documents",
        ])) or "none"),
        ("parameters", f"{number(found.total)} in {many} tensor{'s' if many != 1 else ''}, {found.dtype}"),
    ]  # fmt: skip
    return [(label, str(value)) for label, value in rows if value]
