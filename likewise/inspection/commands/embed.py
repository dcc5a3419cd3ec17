"""likewise embed: write vectors of texts, or of their tokens or words, to a file for other programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indexer.errors import BadInput, TextTooLong, count_of
from likewise.shell.arguments import options
from likewise.shell.terminal.output import number, on_terminal, printable, quiet_libraries, say, say_json, warn

if TYPE_CHECKING:
    from indexer.encoders import Encoder, Role
    from indexer.encoders.recipes.recipe import RecipeSpec
    from indexer.records import Vector
    from likewise.inspection.vector_files import EmbeddedText
    from likewise.shell.terminal.texts import InputText

    Load = Callable[[RecipeSpec], Encoder]

_BATCH_TEXTS = 1024
_BATCH_TEXTS_OF_TOKENS = 32  # fewer, because every token has a vector
_HISTOGRAM_TEXTS = 128  # the hidden values of all their tokens are held in memory


@click.command(cls=options.HelpfulCommand)
@click.argument("texts", nargs=-1, metavar="TEXT... | -")
@click.option(
    "--file", "path", metavar="FILE", type=Path, help="Read texts from FILE: one per line, or .jsonl with text."
)
@click.option("--jsonl", is_flag=True, help="Read lines as JSON objects with text, and perhaps id.")
@click.option("--model", metavar="NAME|PATH", help="The model.  [default: all-MiniLM-L6-v2]")
@click.option(
    "--pooling",
    metavar="P",
    help="How to pool hidden states: cls, mean, max, mean_sqrt_len, weighted_mean, last or pooler.",
)
@click.option("--layers", metavar="L", help="Which hidden layers to pool: -1, -2, 7, -4..-1.")
@click.option("--combine", metavar="C", help="How to combine several layers: mean, sum or concat.")
@click.option(
    "--recipe",
    "recipes",
    multiple=True,
    metavar="R",
    help="Model, pooling, layers and combine in one: MODEL:POOLING@LAYERS+COMBINE. Repeatable.",
)
@click.option("--role", type=click.Choice(["document", "query"]), default="document", show_default=True,
              help="Which of the model's prompts to put before each text, if it has prompts.")  # fmt: skip
@click.option("--truncate", is_flag=True, help="Cut texts that are longer than the model reads.")
@click.option("--tokens", is_flag=True, help="Write one vector per token, as the layers give it: not of unit length.")
@click.option("--words", is_flag=True, help="Write one vector per word: the mean of its tokens' vectors.")
@click.option("-o", "--output", type=Path, metavar="FILE", help="The .npy or .jsonl file to write.")
@click.option(
    "--format", "kind", metavar="F", help="Form of the vectors, npy or jsonl.  [default: by the ending of the file]"
)
@click.option("--histogram", type=Path, metavar="FILE",
              help="Draw the hidden values of each layer, for the first 128 texts. Needs the extra map.")  # fmt: skip
@options.rare("--precision", metavar="P", help="Precision of the weights: auto, float32, bfloat16 or int8.  "
              "[default: auto; for tokens and words float32]")  # fmt: skip
@options.device_option
@options.query_prompt_option
@options.document_prompt_option
@options.trust_option
@options.json_option
def embed(
    texts: tuple[str, ...],
    path: Path | None,
    jsonl: bool,
    model: str | None,
    pooling: str | None,
    layers: str | None,
    combine: str | None,
    recipes: tuple[str, ...],
    role: Role,
    truncate: bool,
    tokens: bool,
    words: bool,
    output: Path | None,
    kind: str | None,
    histogram: Path | None,
    precision: str | None,
    device: str,
    query_prompt: str | None,
    document_prompt: str | None,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Embed each TEXT, or each line of standard input (-), and write the vectors.

    Without --output the vectors are printed as JSON lines. Vectors of texts have unit length. Recipes that share a
    model share one forward pass. A .npy file has room for one recipe. --json prints a summary of the file.

    \b
    likewise embed "how do vaccines work" "bread" -o two.npy
    likewise embed --file notes.jsonl --recipe all-MiniLM-L6-v2 --recipe all-MiniLM-L6-v2:cls@-2 -o both.jsonl
    likewise embed - --format jsonl < sentences.txt
    likewise embed "on the river bank" --tokens --layers -4..-1 --combine concat -o tokens.npy
    """
    from indexer.encoders.load import load_encoder
    from likewise.inspection.vector_files import format_of, open_vectors
    from likewise.shell.terminal.extras import picture_file
    from likewise.shell.terminal.texts import InputText, read_texts

    if bool(texts) == (path is not None) or ("-" in texts and len(texts) > 1):
        raise BadInput("give TEXT..., or - for standard input, or --file FILE: one of the three")
    if tokens and words:
        raise BadInput("--tokens writes one vector per token and --words one per word: choose one")

    chosen_precision = precision or ("float32" if tokens or words else "auto")

    def load(spec: RecipeSpec) -> Encoder:
        trust = trust_remote_code
        return load_encoder(spec, precision=chosen_precision, device=device, trust_remote_code=trust)  # type: ignore[arg-type]

    file_kind = format_of(output, kind)
    histogram_file = picture_file(histogram) if histogram else None
    source = read_texts(texts, path, jsonl)
    size = _BATCH_TEXTS_OF_TOKENS if tokens or words else _BATCH_TEXTS
    count = cut = 0
    with open_vectors(output, file_kind) as out:
        batch = list(islice(source, size))
        if not batch:
            raise BadInput(f"{path or 'standard input'} holds no text: there is nothing to embed")
        quiet_libraries()
        named = _specs(recipes, model, pooling, layers, combine)
        specs = {name: spec.with_prompts(query_prompt, document_prompt) for name, spec in named.items()}
        encoders = {name: load(spec) for name, spec in specs.items()}
        embed_batch = _batch_embedder(encoders, role, truncate, tokens, words, trust_remote_code)
        by_layer = _layers_of(encoders, specs, load) if histogram_file else {}
        drawn = list[InputText]()
        while batch:
            rows = embed_batch(batch)
            # Files and pipes get a text as it is. On a terminal its escape characters are replaced.
            out.write([_printable(row) for row in rows] if output is None and sys.stdout.isatty() else rows)
            if truncate:
                from likewise.evaluation.pairs import too_long

                read = [text.text for text in batch]
                cut += len({position for encoder in encoders.values() for position in too_long(encoder, read, role)})
            drawn += batch[: _HISTOGRAM_TEXTS - len(drawn)]
            count += len(batch)
            _progress(f"{count_of(count, 'text')}" if output else "")
            batch = list(islice(source, size))
    _progress("")
    if histogram_file:
        _draw(histogram_file, by_layer, drawn, role, truncate, trust_remote_code)
    if cut:
        warn(f"cut at the model's token limit: {number(cut)} of {count_of(count, 'text')}")
    if output is not None:
        widths = {row.name: row.vectors.shape[-1] for row in rows}
        unit = ", one vector per token" if tokens else ", one vector per word" if words else ""
        summary = {"output": str(output), "format": file_kind, "texts": count, "cut": cut, "dimensions": widths}
        _print_summary({**summary, "histogram": str(histogram_file) if histogram_file else None}, unit, as_json)


def _specs(
    recipes: Sequence[str], model: str | None, pooling: str | None, layers: str | None, combine: str | None
) -> dict[str, RecipeSpec]:
    """Return the recipes to embed with, by the name of their vectors: a recipe as the user wrote it."""
    from indexer.encoders.recipes.locate import DEFAULT_MODEL
    from indexer.encoders.recipes.recipe import RecipeSpec

    if recipes and (model or pooling or layers or combine):
        raise BadInput("--recipe replaces --model, --pooling, --layers and --combine: give one or the other")
    if recipes:
        return {recipe: RecipeSpec.parse(recipe) for recipe in recipes}
    spec = RecipeSpec.chosen(model or DEFAULT_MODEL, pooling, layers, combine)
    return {str(spec): spec}


def _batch_embedder(
    encoders: dict[str, Encoder], role: Role, truncate: bool, tokens: bool, words: bool, trust_remote_code: bool
) -> Callable[[list[InputText]], list[EmbeddedText]]:
    """Return a function that embeds a batch of texts."""
    from likewise.inspection.many_recipes import TokenEmbedder, embed_texts

    token_embedder = TokenEmbedder(encoders, role, words, trust_remote_code) if tokens or words else None

    def embed_batch(batch: list[InputText]) -> list[EmbeddedText]:
        items = [(text.id, text.text) for text in batch]
        try:
            if token_embedder:
                return token_embedder.embed(items, truncate)
            return embed_texts(encoders, items, role, truncate)
        except TextTooLong as error:
            excess = f"{number(error.tokens)} tokens and the model reads {error.limit}"
            raise BadInput(
                f"{batch[error.index].place} has {excess}: shorten it, cut it into passages, or add --truncate"
            ) from error

    return embed_batch


def _layers_of(encoders: dict[str, Encoder], specs: dict[str, RecipeSpec], load: Load) -> dict[str, Encoder]:
    """Return an encoder for each layer of the one model of the recipes, by the layer's number.

    Raises:
        BadInput: the recipes have several models.
    """
    from indexer.encoders.recipes.recipe import RecipeSpec
    from likewise.inspection.hidden_states import require_layers

    first, *_ = specs.values()
    if len(models := {spec.model for spec in specs.values()}) > 1:
        raise BadInput(f"--histogram draws the layers of one model, not of {', '.join(sorted(models))}")
    layers = require_layers(next(iter(encoders.values()))).transformer.layers + 1
    plain = RecipeSpec(first.model, "mean", query_prompt=first.query_prompt, document_prompt=first.document_prompt)
    return {str(layer): load(replace(plain, layers=(layer,))) for layer in range(layers)}


def _draw(
    path: Path,
    by_layer: dict[str, Encoder],
    texts: Sequence[InputText],
    role: Role,
    truncate: bool,
    trust_remote_code: bool,
) -> None:
    """Draw the hidden values of the tokens of some texts, layer by layer."""
    from likewise.inspection.many_recipes import TokenEmbedder
    from likewise.inspection.plots import draw_layers

    embedder = TokenEmbedder(by_layer, role, False, trust_remote_code)
    values: dict[str, list[Vector]] = {}
    for start in range(0, len(texts), _BATCH_TEXTS_OF_TOKENS):
        part = [(text.id, text.text) for text in texts[start : start + _BATCH_TEXTS_OF_TOKENS]]
        for row in embedder.embed(part, truncate):
            values.setdefault(row.name, []).append(row.vectors)
    title = f"{by_layer['0'].recipe.model}: hidden values of the tokens of {count_of(len(texts), 'text')}"
    draw_layers(path, title, [*values.values()])


def _print_summary(summary: dict[str, Any], unit: str, as_json: bool) -> None:
    if as_json:
        say_json(summary)
        return
    recipes = "; ".join(f"{name}, {width} dimensions" for name, width in summary["dimensions"].items())
    texts = count_of(summary["texts"], "text")
    say(f"{summary['output']}: {texts}, {recipes}{unit}")


def _printable(row: EmbeddedText) -> EmbeddedText:
    return replace(row, text=printable(row.text), tokens=row.tokens and tuple(printable(token) for token in row.tokens))


def _progress(text: str) -> None:
    if on_terminal():
        click.echo(f"\033[K{text}\r", err=True, nl=False)
