"""likewise tokens: print the tokens that a model reads of a text, or the cosines of their hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from indexer.errors import BadInput, ModelError, TextTooLong
from likewise.shell.arguments.options import HelpfulCommand, json_option, trust_option
from likewise.shell.terminal.output import quiet_libraries, say, say_json, warn
from likewise.shell.terminal.tables import print_table

if TYPE_CHECKING:
    from indexer.encoders.recipes.recipe import RecipeSpec
    from indexer.encoders.torch.checkpoint import Checkpoint
    from indexer.records import Vector
    from likewise.inspection.tokens import Token, Word


@click.command(cls=HelpfulCommand)
@click.argument("text")
@click.argument("text2", required=False)
@click.option("--model", metavar="NAME|PATH", help="The model.  [default: all-MiniLM-L6-v2]")
@click.option("--words", is_flag=True, help="Use whole words; the vector of a word is the mean of its tokens' vectors.")
@click.option("--similarity", is_flag=True, help="Print the cosines between tokens, or between words.")
@click.option("--of", "chosen", multiple=True, metavar="WORD", help="Compare every occurrence of WORD. Repeatable.")
@click.option(
    "--at", "positions", multiple=True, type=int, metavar="N", help="Compare token (or word) number N. Repeatable."
)
@click.option("--layers", metavar="L", help="Which hidden layers: -1, 7, -4..-1.  [default: the middle two]")
@click.option("--combine", metavar="C", help="How to combine several layers: mean, sum or concat.  [default: mean]")
@click.option("--truncate", is_flag=True, help="Cut a text that is longer than the model reads.")
@trust_option
@json_option
def tokens(
    text: str,
    text2: str | None,
    model: str | None,
    words: bool,
    similarity: bool,
    chosen: tuple[str, ...],
    positions: tuple[int, ...],
    layers: str | None,
    combine: str | None,
    truncate: bool,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Print the tokens that a model reads of TEXT, or of the pair TEXT and TEXT2: ids, segments, mask.

    With --similarity, print the cosines between the tokens' hidden states instead: by default of the words that
    occur more than once, or of all tokens if no word does. No prompt is added.

    \b
    likewise tokens "The bank robber was seen on the river bank."
    likewise tokens "The bank robber was seen on the river bank." --similarity --of bank --layers -1
    likewise tokens "How old is she?" "She is twelve." --words --json
    """
    from indexer.encoders.recipes.locate import DEFAULT_MODEL, find_model, has_two_routes
    from indexer.encoders.recipes.recipe import RecipeSpec
    from indexer.encoders.torch.checkpoint import Checkpoint
    from likewise.inspection.tokens import TokenReader, words_of
    from likewise.shell.terminal.texts import is_unicode

    if not similarity and (chosen or positions or layers or combine):
        raise BadInput("--of, --at, --layers and --combine choose what --similarity compares: add it")
    texts = (text,) if text2 is None else (text, text2)
    for number, part in enumerate(texts, start=1):
        if not is_unicode(part):
            raise BadInput(f"text {number} is not UTF-8: convert it first")
    quiet_libraries()
    spec = RecipeSpec.parse(model or DEFAULT_MODEL)
    route = "document" if has_two_routes(find_model(spec.model)) else ""
    checkpoint = Checkpoint(replace(spec, route=route), trust_remote_code)
    reader = TokenReader(checkpoint)
    try:
        read = reader.read(text, text2)
    except TextTooLong as error:
        excess = f"{'the text has' if text2 is None else 'both texts have'} {error.tokens} tokens"
        if not truncate:
            raise BadInput(f"{excess} and {spec.model} reads {error.limit}: shorten, or add --truncate") from error
        warn(f"{excess}: cut to the {error.limit} that {spec.model} reads")
        read = reader.read(text, text2, truncate=True)
    whole = words_of(read, *texts)
    pieces = [[read[position].token for position in word.positions] for word in whole]
    result: dict[str, Any] = {
        "model": spec.model,
        "max_tokens": reader.limit,
        "tokens": [asdict(token) for token in read],
    }
    if words:
        result["words"] = [{**asdict(word), "tokens": part} for word, part in zip(whole, pieces, strict=True)]
    if similarity:
        labels = [word.text for word in whole] if words else [token.text or token.token for token in read]
        rows = _compared_positions(labels, read, whole, words, chosen, positions)
        if not rows:
            raise BadInput("the model reads no whole word in the text: there is nothing to compare")
        recipe, vectors = _vectors(spec, checkpoint, layers, combine, read, whole if words else None, trust_remote_code)
        result |= {"recipe": recipe, "compared": [{"at": row, "text": labels[row]} for row in rows]}
        result["cosines"] = _cosines(vectors[rows]).round(6).tolist()
    if as_json:
        say_json(result)
        return
    if similarity:
        say(f"cosines: {recipe}")
        _print_matrix([f"{row} {labels[row]}" for row in rows], result["cosines"])
    elif words:
        lines = [(number, word.text, " ".join(pieces[number])) for number, word in enumerate(whole)]
        print_table([("", "word", "tokens"), *lines], right=(0,))
    else:
        listed = [(number, token.token, token.id, token.segment, token.mask) for number, token in enumerate(read)]
        print_table([("", "token", "id", "segment", "mask"), *listed], right=(0, 2, 3, 4))


def _compared_positions(
    labels: Sequence[str],
    read: Sequence[Token],
    whole: Sequence[Word],
    words: bool,
    chosen: tuple[str, ...],
    numbers: tuple[int, ...],
) -> list[int]:
    """Return the positions to compare: the chosen positions, or the words that occur more than once, or all positions.

    Args:
        labels: text of each token, or of each word.
        read: the tokens.
        whole: the words.
        words: compare words, not tokens.
        chosen: words to compare at every occurrence.
        numbers: positions to compare.

    Raises:
        BadInput: a word does not occur, or there is no such position.
    """

    kind, last = "word" if words else "token", len(labels) - 1
    if wrong := [number for number in numbers if not 0 <= number <= last]:
        raise BadInput(f"there is no {kind} {wrong[0]}: they are numbered from 0 to {last}")
    positions = set(numbers)
    for word in chosen:
        same = {position for position, label in enumerate(labels) if label.casefold() == word.casefold()}
        if not words:
            same |= {position for position, token in enumerate(read) if token.token == word}
        if not same:
            several = not words and any(other.text.casefold() == word.casefold() for other in whole)
            advice = f"several tokens make up {word!r}: add --words" if several else "see them without --similarity"
            raise BadInput(f"no {kind} reads {word!r}: {advice}")
        positions |= same
    if chosen or numbers:
        return sorted(positions)
    candidates = (
        range(len(labels)) if words else [position for position, token in enumerate(read) if token.word is not None]
    )
    folded = [label.casefold() for label in labels]
    repeated = [one for one in candidates if labels[one].isalnum() and folded.count(folded[one]) > 1]
    return repeated or list(candidates)


def _vectors(
    spec: RecipeSpec,
    checkpoint: Checkpoint,
    layers: str | None,
    combine: str | None,
    read: Sequence[Token],
    words: Sequence[Word] | None,
    trust: bool,
) -> tuple[str, Vector]:
    """Return a description of what was computed, and the vectors (tokens or words, width) in float32."""
    from indexer.encoders.load import load_encoder
    from indexer.encoders.recipes.recipe import RecipeSpec, parse_layers
    from likewise.inspection.hidden_states import require_layers, token_vectors, word_vectors

    if checkpoint.transformer is None:
        raise ModelError(f"model {spec.model!r} has no hidden layers: a token's vector is the same in every text")
    plain = RecipeSpec(spec.model, "mean", combine=combine or spec.combine)  # type: ignore[arg-type]  # load_encoder refuses others
    chosen_layers = parse_layers(layers) if layers else spec.layers
    if chosen_layers is None:
        last = require_layers(load_encoder(plain, precision="float32", trust_remote_code=trust)).transformer.layers
        chosen_layers = (last // 2, last // 2 + 1) if last > 1 else (last,)
    recipe = replace(plain, layers=chosen_layers)
    encoder = require_layers(load_encoder(recipe, precision="float32", trust_remote_code=trust))
    ((vectors,),) = token_vectors([encoder], [read])
    several = f", {encoder.head.combine}" if len(encoder.head.layers) > 1 else ""
    numbers = ", ".join(map(str, encoder.head.layers))
    description = f"{spec.model}, layer{'s' if several else ''} {numbers} of {encoder.transformer.layers}{several}"
    return description, vectors if words is None else word_vectors(vectors, words)


def _print_matrix(names: Sequence[str], cosines: Sequence[Sequence[float]]) -> None:
    lines = [(name, *(f"{cosine:.3f}" for cosine in row)) for name, row in zip(names, cosines, strict=True)]
    print_table([("", *names), *lines], right=range(1, len(names) + 1))


def _cosines(vectors: Vector) -> Vector:
    import numpy as np

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)
