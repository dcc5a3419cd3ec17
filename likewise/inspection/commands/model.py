"""likewise model: describe a model from its files, without loading its weights."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from likewise.shell.arguments.options import HelpfulCommand, json_option
from likewise.shell.terminal.output import number, quiet_libraries, say, say_json
from likewise.shell.terminal.tables import print_table

if TYPE_CHECKING:
    from likewise.inspection.model_card import ModelDescription


@click.command(cls=HelpfulCommand)
@click.argument("name", metavar="NAME|PATH")
@json_option
def model(name: str, as_json: bool) -> None:
    """Describe the model NAME: its layers, dimensions, limits, modules and parameters.

    \b
    likewise model all-MiniLM-L6-v2
    likewise model ~/models/my-bert --json
    """
    from likewise.inspection.model_card import describe

    quiet_libraries()
    description = describe(name)
    if as_json:
        say_json(_members(description))
        return
    _print(description)
    if description.question is not None:
        say("\nquestions are embedded by")
        _print(description.question)


def _members(description: ModelDescription) -> dict[str, object]:
    members = asdict(description)
    members["files"] = [{"file": file, "bytes": size} for file, size in description.files]
    if description.question is None:
        del members["question"]
    else:
        members["question"] = _members(description.question)
    return {**members, "dtype": description.dtype, "total": description.total}


def _print(description: ModelDescription) -> None:
    print_table(_summary(description))
    say("")
    print_table(
        (
            (parameter.name, " x ".join(map(number, parameter.shape)) or "1", number(parameter.count))
            for parameter in description.parameters
        ),
        right=(1, 2),
    )


def _summary(description: ModelDescription) -> list[tuple[str, str]]:
    """Return the label and value of each line."""
    no_layers = "none: it has no transformer, so no hidden layers to pool"
    layers = f"{description.layers}, and the embeddings as layer 0" if description.layers else no_layers
    files = ", ".join(f"{file} ({size / 2**20:.1f} MB)" for file, size in description.files)
    many = len(description.parameters)
    rows: list[tuple[str, object]] = [
        ("model", description.model),
        ("folder", description.folder),
        ("files", files),
        ("fingerprint", description.fingerprint),
        ("kind", description.architecture),
        ("layers", layers),
        ("hidden size", description.hidden),
        ("heads", description.heads),
        ("vocabulary", description.vocabulary and number(description.vocabulary)),
        ("dimensions", description.dimensions),
        ("token limit", description.max_tokens),
        ("modules", ", ".join(description.modules) or "none: a bare transformer, pooled by mean by default"),
        ("pooling", ", ".join(description.pooling)),
        ("prompts", ", ".join(filter(None, [
            description.query_prompt and f"{description.query_prompt!r} before queries",
            description.document_prompt and f"{description.document_prompt!r} before documents",
        ])) or "none"),
        ("parameters", f"{number(description.total)} in {many} tensor{'s' if many != 1 else ''}, {description.dtype}"),
    ]  # fmt: skip
    return [(label, str(value)) for label, value in rows if value]
