"""likewise tokens: what a model reads of a text, and how near its tokens or words are to each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from search.cli.options import json_option
from search.cli.output import printable, quiet_libraries, say, say_json, warn

if TYPE_CHECKING:
    from indexer.encoders.checkpoint import Checkpoint
    from indexer.encoders.inspection.tokens import Token, Word
    from indexer.encoders.recipe import RecipeSpec
    from indexer.records import Vector


@click.command()
@click.argument("text")
@click.argument("text2", required=False)
@click.option("--model", metavar="NAME|PATH", help="The model.  [default: all-MiniLM-L6-v2]")
@click.option("--words", is_flag=True, help="Show whole words; the vector of a word is the mean of its tokens'.")
@click.option("--similarity", is_flag=True, help="Print the cosines of tokens, or words, with each other.")
@click.option("--of", "chosen", multiple=True, metavar="WORD", help="Compare every occurrence of WORD. Repeatable.")
@click.option(
    "--at", "places", multiple=True, type=int, metavar="N", help="Compare the token, or word, at N. Repeatable."
)
@click.option("--layers", metavar="L", help="Of these hidden layers: -1, 7, -4..-1.  [default: the middle two]")
@click.option("--combine", metavar="C", help="Several layers become one by mean, sum or concat.  [default: mean]")
@click.option("--truncate", is_flag=True, help="Cut a text that is longer than the model reads.")
@click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model. Know whose it is.")
@json_option
def tokens(
    text: str,
    text2: str | None,
    model: str | None,
    words: bool,
    similarity: bool,
    chosen: tuple[str, ...],
    places: tuple[int, ...],
    layers: str | None,
    combine: str | None,
    truncate: bool,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Print the tokens that a model reads of TEXT, or of the pair TEXT and TEXT2: ids, segments, mask.

    With --similarity, print instead how near their vectors in the model's hidden layers are to each other:
    cosines, by default of the words that occur more than once, or of all where none does. No prompt is added.

    \b
    likewise tokens "The bank robber was seen on the river bank."
    likewise tokens "The bank robber was seen on the river bank." --similarity --of bank --layers -1
    likewise tokens "How old is she?" "She is twelve." --words --json
    """
    from indexer.encoders.checkpoint import Checkpoint
    from indexer.encoders.inspection.tokens import TokenReader, words_of
    from indexer.encoders.locate import DEFAULT_MODEL
    from indexer.encoders.recipe import RecipeSpec
    from indexer.errors import BadInput, TextTooLong
    from search.cli.texts import is_unicode

    if not similarity and (chosen or places or layers or combine):
        raise BadInput("--of, --at, --layers and --combine choose what --similarity compares: add it")
    texts = (text,) if text2 is None else (text, text2)
    for number, each in enumerate(texts, start=1):
        if not is_unicode(each):
            raise BadInput(f"text {number} is not UTF-8: convert it first")
    with quiet_libraries():
        spec = RecipeSpec.parse(model or DEFAULT_MODEL)
        checkpoint = Checkpoint(spec, trust_remote_code)
        reader = TokenReader(checkpoint)
    try:
        read = reader.read(text, text2)
    except TextTooLong as error:
        over = f"{'the text has' if text2 is None else 'both texts have'} {error.tokens} tokens"
        if not truncate:
            raise BadInput(f"{over} and {spec.model} reads {error.limit}: shorten, or add --truncate") from error
        warn(f"{over}: cut to the {error.limit} that {spec.model} reads")
        read = reader.read(text, text2, truncate=True)
    whole = words_of(read, *texts)
    said: dict[str, Any] = {"model": spec.model, "max_tokens": reader.limit, "tokens": [asdict(each) for each in read]}
    if words:
        said["words"] = [{**asdict(word), "tokens": [read[at].token for at in word.positions]} for word in whole]
    if similarity:
        labels = [word.text for word in whole] if words else [token.text or token.token for token in read]
        rows = _rows(labels, read, whole, words, chosen, places)
        if not rows:
            raise BadInput("the text holds no word that the model knows as one: there is nothing to compare")
        with quiet_libraries():
            recipe, vectors = _vectors(
                spec, checkpoint, layers, combine, read, whole if words else None, trust_remote_code
            )
        said |= {"recipe": recipe, "compared": [{"at": at, "text": labels[at]} for at in rows]}
        said["cosines"] = _cosines(vectors[rows]).round(6).tolist()
    if as_json:
        say_json(said)
        return
    if similarity:
        say(f"cosines: {recipe}")
        names = [f"{at} {labels[at]}" for at in rows]
        matrix = zip(names, said["cosines"], strict=True)
        _table(("", *names), [(name, *(f"{cosine:.3f}" for cosine in row)) for name, row in matrix])
    elif words:
        pieces = [" ".join(read[at].token for at in word.positions) for word in whole]
        _table(("", "word", "tokens"), [(at, word.text, pieces[at]) for at, word in enumerate(whole)])
    else:
        listed = [(at, token.token, token.id, token.segment, token.mask) for at, token in enumerate(read)]
        _table(("", "token", "id", "segment", "mask"), listed)


def _rows(
    labels: Sequence[str],
    read: Sequence[Token],
    whole: Sequence[Word],
    words: bool,
    chosen: tuple[str, ...],
    places: tuple[int, ...],
) -> list[int]:
    """Positions to compare. Raises BadInput for a word that does not occur or a position that is none."""
    from indexer.errors import BadInput

    kind, last = "word" if words else "token", len(labels) - 1
    found = set(places)
    if wrong := [at for at in places if not 0 <= at <= last]:
        raise BadInput(f"there is no {kind} {wrong[0]}: they are numbered from 0 to {last}")
    for each in chosen:
        same = [at for at, label in enumerate(labels) if label.casefold() == each.casefold()]
        if not words:
            same += [at for at, token in enumerate(read) if token.token == each and at not in same]
        if not same:
            several = not words and any(word.text.casefold() == each.casefold() for word in whole)
            advice = f"several tokens make up {each!r}: add --words" if several else "see them without --similarity"
            raise BadInput(f"no {kind} reads {each!r}: {advice}")
        found |= set(same)
    if chosen or places:
        return sorted(found)
    own = range(len(labels)) if words else [at for at, token in enumerate(read) if token.word is not None]
    folded = [label.casefold() for label in labels]
    return [at for at in own if labels[at].isalnum() and folded.count(folded[at]) > 1] or list(own)


def _vectors(
    spec: RecipeSpec,
    checkpoint: Checkpoint,
    layers: str | None,
    combine: str | None,
    read: Sequence[Token],
    words: Sequence[Word] | None,
    trust: bool,
) -> tuple[str, Vector]:
    """What was computed, in words, and the vectors (tokens or words, width) in float32."""
    from indexer.encoders.inspection.hidden_states import require_layers, token_vectors, word_vectors
    from indexer.encoders.load import load_encoder
    from indexer.encoders.recipe import RecipeSpec, parse_layers
    from indexer.errors import ModelError

    if checkpoint.transformer is None:
        raise ModelError(f"model {spec.model!r} has no hidden layers: a token's vector is the same in every text")
    plain = RecipeSpec(spec.model, "mean", combine=combine or spec.combine)  # type: ignore[arg-type]  # refused below
    wanted = parse_layers(layers) if layers else spec.layers
    if wanted is None:
        last = require_layers(load_encoder(plain, precision="float32", trust_remote_code=trust)).transformer.layers
        wanted = (last // 2, last // 2 + 1) if last > 1 else (last,)
    encoder = require_layers(load_encoder(replace(plain, layers=wanted), precision="float32", trust_remote_code=trust))
    ((vectors,),) = token_vectors([encoder], [read])
    several = f", {encoder.head.combine}" if len(encoder.head.layers) > 1 else ""
    numbers = ", ".join(map(str, encoder.head.layers))
    made = f"{spec.model}, layer{'s' if several else ''} {numbers} of {encoder.transformer.layers}{several}"
    return made, vectors if words is None else word_vectors(vectors, words)


def _cosines(vectors: Vector) -> Vector:
    import numpy as np

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns of text to the left, of numbers to the right."""
    cells = [[printable(str(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [all(_is_number(cell) for cell in column[1:]) for column in zip(*cells, strict=True)]
    for row in cells:
        columns = zip(row, widths, numeric, strict=True)
        line = "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in columns)
        click.echo(line.rstrip())


def _is_number(cell: str) -> bool:
    return cell.removeprefix("-").replace(".", "").isdigit()
