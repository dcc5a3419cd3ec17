"""likewise embed: vectors of texts, or of their tokens and words, as files for other programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from search.cli.options import json_option
from search.cli.output import number, on_terminal, printable, quiet_libraries, say, say_json, warn

if TYPE_CHECKING:
    from indexer.encoders import Encoder, Role
    from indexer.encoders.inspection.vector_files import EmbeddedText
    from indexer.encoders.recipe import RecipeSpec
    from search.cli.texts import Text

    Load = Callable[[RecipeSpec], Encoder]

_TEXTS = 1024  # that are embedded together
_TEXTS_OF_TOKENS = 32  # whose tokens' vectors are held together
_TEXTS_DRAWN = 1024  # whose values --histogram counts


@click.command()
@click.argument("texts", nargs=-1, metavar="TEXT... | -")
@click.option(
    "--file", "path", metavar="FILE", type=Path, help="Read texts from FILE: one a line, or .jsonl with text."
)
@click.option("--jsonl", is_flag=True, help="The lines read are JSON objects with a text, and may have an id.")
@click.option("--model", metavar="NAME|PATH", help="The model.  [default: all-MiniLM-L6-v2]")
@click.option("--pooling", metavar="P", help="cls, mean, max, mean_sqrt_len, weighted_mean, last or pooler.")
@click.option("--layers", metavar="L", help="Hidden layers to pool: -1, -2, 7, -4..-1.")
@click.option("--combine", metavar="C", help="Several layers become one by mean, sum or concat.")
@click.option("--recipe", "recipes", multiple=True, metavar="R", help="MODEL:POOLING@LAYERS+COMBINE. Repeatable.")
@click.option("--role", type=click.Choice(["document", "query"]), default="document", show_default=True,
              help="Which prompt is put before each text, where the model has prompts.")  # fmt: skip
@click.option("--truncate", is_flag=True, help="Cut texts that are longer than the model reads.")
@click.option("--tokens", is_flag=True, help="A vector for every token, as the layers give it: not of unit length.")
@click.option("--words", is_flag=True, help="A vector for every word: the mean of its tokens'.")
@click.option("-o", "--output", type=Path, metavar="FILE", help="A .npy, .safetensors, .jsonl or .csv file to write.")
@click.option("--format", "kind", metavar="F", help="npy, safetensors, jsonl or csv.  [default: by the file's ending]")
@click.option("--histogram", type=Path, metavar="FILE", help="Draw how hidden values are distributed in each layer.")
@click.option(
    "--precision", metavar="P", help="auto, float32, bfloat16, int8.  [default: auto; of tokens and words float32]"
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, ...")
@click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model. Know whose it is.")
@json_option
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
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Embed each TEXT, or each line of standard input (-), and write the vectors; JSON lines where no file is named.

    Vectors of texts have unit length. Recipes that share a model come out of one forward pass; .npy holds one
    recipe, .safetensors a tensor for each. --json sums up the file that was written. --histogram draws the
    hidden states of the first 1,024 texts.

    \b
    likewise embed "how do vaccines work" "bread" -o two.npy
    likewise embed --file notes.jsonl --recipe all-MiniLM-L6-v2 --recipe all-MiniLM-L6-v2:cls@-2 -o both.safetensors
    likewise embed - --format csv < sentences.txt
    likewise embed "on the river bank" --tokens --layers -4..-1 --combine concat -o tokens.npy
    """
    from indexer.encoders.inspection.plots import picture
    from indexer.encoders.inspection.vector_files import format_of, open_vectors
    from indexer.encoders.load import load_encoder
    from indexer.encoders.torch.int8 import calibrate_int8
    from indexer.errors import BadInput
    from search.cli.texts import read_texts

    if recipes and (model or pooling or layers or combine):
        raise BadInput("--recipe says what --model, --pooling, --layers and --combine say: give one or the other")
    if bool(texts) == (path is not None) or ("-" in texts and len(texts) > 1):
        raise BadInput("give TEXT..., or - for standard input, or --file FILE: one of the three")
    if tokens and words:
        raise BadInput("--tokens gives a vector a token and --words one a word: choose one")

    exact = precision or ("float32" if tokens or words else "auto")

    def load(spec: RecipeSpec) -> Encoder:
        return load_encoder(spec, precision=exact, device=device, trust_remote_code=trust_remote_code)  # type: ignore[arg-type]

    file_kind = format_of(output, kind)
    drawn = picture(histogram) if histogram else None
    source = read_texts(texts, path, jsonl)
    size = _TEXTS_OF_TOKENS if tokens or words else _TEXTS
    count = cut = 0
    with open_vectors(output, file_kind) as out:
        batch = list(islice(source, size))
        if not batch:
            raise BadInput(f"{path or 'standard input'} holds no text: there is nothing to embed")
        with quiet_libraries():
            specs = _specs(recipes, model, pooling, layers, combine)
            encoders = {name: load(spec) for name, spec in specs.items()}
            for encoder in encoders.values():
                calibrate_int8(encoder, [each.text for each in batch])
            run = _embedder(encoders, role, truncate, tokens, words, trust_remote_code)
            draw = _Drawing(encoders, specs, load, role, trust_remote_code) if drawn else None
        while batch:
            rows = run(batch, count)
            # Escape characters of a text are for files and pipes: CSV would carry them to a terminal.
            out.write([_printable(row) for row in rows] if output is None and sys.stdout.isatty() else rows)
            cut += _over(encoders, role, batch) if truncate else 0
            if draw:
                draw.add(batch, truncate)
            count += len(batch)
            _progress(f"{number(count)} texts" if output else "")
            batch = list(islice(source, size))
    _progress("")
    if draw and drawn:
        draw.save(drawn)
    if cut:
        warn(f"{number(cut)} of {number(count)} texts were cut at the model's token limit")
    if output is not None:
        widths = {row.name: row.vectors.shape[-1] for row in rows}
        each = ", a vector a token" if tokens else ", a vector a word" if words else ""
        said = {"output": str(output), "format": file_kind, "texts": count, "cut": cut, "dimensions": widths}
        _sum_up({**said, "histogram": str(drawn) if drawn else None}, each, as_json)


def _specs(
    recipes: Sequence[str], model: str | None, pooling: str | None, layers: str | None, combine: str | None
) -> dict[str, RecipeSpec]:
    """What is asked for, by the name that its vectors get: a recipe as it was written."""
    from indexer.encoders.locate import DEFAULT_MODEL
    from indexer.encoders.recipe import RecipeSpec

    if recipes:
        return {recipe: RecipeSpec.parse(recipe) for recipe in recipes}
    spec = RecipeSpec.chosen(model or DEFAULT_MODEL, pooling, layers, combine)
    return {str(spec): spec}


def _embedder(
    encoders: dict[str, Encoder], role: Role, truncate: bool, tokens: bool, words: bool, trust_remote_code: bool
) -> Callable[[list[Text], int], list[EmbeddedText]]:
    """Rows of a batch whose first text has a number."""
    from indexer.encoders.inspection.many_recipes import TokenEmbedder, embed_texts
    from indexer.errors import BadInput, TextTooLong

    of_tokens = TokenEmbedder(encoders, role, words, trust_remote_code) if tokens or words else None

    def run(batch: list[Text], start: int) -> list[EmbeddedText]:
        items = [(text.id, text.text) for text in batch]
        try:
            if of_tokens:
                return of_tokens.embed(items, truncate, start)
            return embed_texts(encoders, items, role, truncate, start)
        except TextTooLong as error:
            place, long = batch[error.index].place, f"{number(error.tokens)} tokens and the model reads {error.limit}"
            raise BadInput(f"{place} has {long}: shorten it, cut it into passages, or add --truncate") from error

    return run


def _over(encoders: dict[str, Encoder], role: Role, batch: list[Text]) -> int:
    """How many texts a recipe had to cut."""
    texts = [text.text for text in batch]
    over: set[int] = set()
    for limit, encoder in {(each.recipe.fingerprint, each.max_tokens): each for each in encoders.values()}.items():
        room = limit[1] - encoder.overhead(role)
        over |= {at for at, spans in enumerate(encoder.offsets(texts)) if len(spans) > room}
    return len(over)


class _Drawing:
    """Counts the values of every layer of the one model that is asked for."""

    def __init__(
        self,
        encoders: dict[str, Encoder],
        specs: dict[str, RecipeSpec],
        load: Load,
        role: Role,
        trust_remote_code: bool,
    ) -> None:
        from indexer.encoders.inspection.hidden_states import require_layers
        from indexer.encoders.inspection.many_recipes import TokenEmbedder
        from indexer.encoders.inspection.plots import LayerHistogram
        from indexer.encoders.recipe import RecipeSpec
        from indexer.errors import BadInput

        models = {spec.model for spec in specs.values()}
        if len(models) > 1:
            raise BadInput(f"--histogram draws the layers of one model, not of {', '.join(sorted(models))}")
        (self._model,) = models
        layers = require_layers(next(iter(encoders.values()))).transformer.layers + 1
        each = {str(layer): load(RecipeSpec(self._model, "mean", (layer,))) for layer in range(layers)}
        self._embedder = TokenEmbedder(each, role, words=False, trust_remote_code=trust_remote_code)
        self._counts, self._texts = LayerHistogram(layers), 0

    def add(self, batch: list[Text], truncate: bool) -> None:
        drawn = batch[: _TEXTS_DRAWN - self._texts]
        self._texts += len(drawn)
        for start in range(0, len(drawn), _TEXTS_OF_TOKENS):
            part = drawn[start : start + _TEXTS_OF_TOKENS]
            for row in self._embedder.embed([(text.id, text.text) for text in part], truncate):
                self._counts.add(int(row.name), row.vectors)

    def save(self, path: Path) -> None:
        many = f"{number(self._texts)} text{'s' if self._texts != 1 else ''}"
        self._counts.save(path, f"{self._model}: hidden values of the tokens of {many}")


def _sum_up(said: dict[str, Any], each: str, as_json: bool) -> None:
    if as_json:
        say_json(said)
        return
    made = "; ".join(f"{name}, {width} dimensions" for name, width in said["dimensions"].items())
    say(f"{said['output']}: {number(said['texts'])} text{'s' if said['texts'] != 1 else ''}, {made}{each}")


def _printable(row: EmbeddedText) -> EmbeddedText:
    return replace(row, text=printable(row.text), tokens=row.tokens and tuple(printable(token) for token in row.tokens))


def _progress(text: str) -> None:
    if on_terminal():
        click.echo(f"\033[K{text}\r", err=True, nl=False)
