"""likewise model: describe a model from its files, without loading its weights."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from search.cli.options import json_option
from search.cli.output import number, quiet_libraries, say, say_json
from search.cli.tables import print_table

if TYPE_CHECKING:
    from indexer.encoders.inspection.model_card import ModelDescription


@click.command()
@click.argument("name", metavar="NAME|PATH")
@json_option
def model(name: str, as_json: bool) -> None:
    """Describe the model NAME: its layers, dimensions, limits, modules and parameters.

    \b
    likewise model all-MiniLM-L6-v2
    likewise model ~/models/my-bert --json
    """
    from indexer.encoders.inspection.model_card import describe

    with quiet_libraries():
        description = describe(name)
    if as_json:
        members = asdict(description)
        members["files"] = [{"file": file, "bytes": size} for file, size in description.files]
        say_json({**members, "dtype": description.dtype, "total": description.total})
        return
    print_table(_summary(description))
    say("")
    print_table(
        (
            (parameter.name, " x ".join(map(number, parameter.shape)) or "1", number(parameter.count))
            for parameter in description.parameters
        ),
        right=(1, 2),
    )


def _summary(found: ModelDescription) -> list[tuple[str, str]]:
    """Return the label and value of each line."""
    no_layers = "none: it has no transformer, so no hidden layers to pool"
    layers = f"{found.layers}, and the embeddings as layer 0" if found.layers else no_layers
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
        ("modules", ", ".join(found.modules) or "none: a bare transformer, whose last layer is averaged by default"),
        ("pooling", ", ".join(found.pooling)),
        ("prompts", ", ".join(filter(None, [
            found.query_prompt and f"{found.query_prompt!r} before queries",
            found.document_prompt and f"{found.document_prompt!r} before documents",
        ])) or "none"),
        ("parameters", f"{number(found.total)} in {many} tensor{'s' if many != 1 else ''}, {found.dtype}"),
    ]  # fmt: skip
    return [(label, str(value)) for label, value in rows if value]
