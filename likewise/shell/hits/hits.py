"""Printing hits: as text for people, or as JSON for programs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from indexer.errors import in_shell
from likewise.shell.terminal.output import printable, say, say_json, shown, warn, warn_of
from likewise.shell.terminal.terminal import Terminal, link_address, short_path, terminal

if TYPE_CHECKING:
    from likewise.shell.hits.context import Surroundings
    from likewise.shell.snippets import Snippet
    from search.hits.hits import Hit, Hits

_NO_ANSWER = "nothing here seems to answer this: the best hit is no nearer than the best hits of unrelated questions"
_INDENT = "    "
_LISTED_FAMILY = 10
"""Maximum uris of a family that are printed."""
_LONGEST_TITLE = 3
"""Maximum lines of a title on a terminal. Some titles are a paragraph."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """How hits are printed as text.

    Attributes:
        explain: add the reasons of each score.
        stem: words with the same stem count once when the part of a passage to show is chosen.
        surroundings: the neighbouring passages of each hit, by its rank; empty shows the hits alone.
        first_rank: rank of the first hit, which is not 1 on a later page.
    """

    explain: bool = False
    stem: Callable[[str], Hashable] = str.casefold
    surroundings: Mapping[int, Surroundings] = field(default_factory=dict)
    first_rank: int = 1


def print_hits(hits: Hits, as_json: bool, presentation: Presentation | None = None) -> None:
    """Print hits, and their notes on standard error."""
    presentation = presentation or Presentation()
    warn_of(hits.notes)
    if hits.did_you_mean and not as_json:
        warn_of([f"did you mean: {hits.did_you_mean}"])
    if as_json:
        answer = hits.as_json() | {"notes": [*map(in_shell, hits.notes)]}
        for rank, surroundings in presentation.surroundings.items():
            answer["hits"][rank - 1] |= {"before": surroundings.before, "after": surroundings.after}
        say_json(answer)
    elif not hits:
        say(_describe_no_hits(hits))
    elif (screen := terminal()) is not None:
        _print_on_terminal(hits, presentation, screen)
    else:
        if hits.answered is False:
            warn(_NO_ANSWER)
        for rank, hit in enumerate(hits, presentation.first_rank):
            reasons = (f"{label}{reason}" for label, reason in _reasons_if(hit, presentation))
            click.echo("\n".join([*_lines(rank, hit, presentation), *reasons, ""]))


def folds(fold: bool | None) -> bool:
    """Return whether hits that a person reads are folded: as asked, or else on a terminal."""
    return terminal() is not None if fold is None else fold


def stem_of(language: str) -> Callable[[str], Hashable]:
    """Return the function that maps a word to its stem, as a search by words does in this language."""
    from indexer.stores.words.analysis import stored_analysis

    analysis = stored_analysis(language)
    return lambda word: tuple(analysis.terms(word)) or word.casefold()


def _describe_no_hits(hits: Hits) -> str:
    if hits.matched:
        return "no hits: none reaches the minimum; lower --min-score (a cosine is at most 1)"
    if hits.mode == "words":
        return "no hits: no document holds a word of the question and passes the filter and the conditions"
    if not hits.query:
        return "nothing to rank: there is no other document, or none passes the filter"
    return "nothing to rank: the index is empty, or no document passes the filter and the conditions"


def _lines(rank: int, hit: Hit, presentation: Presentation) -> Iterable[str]:
    """Yield the lines of a hit in a file or a pipe: title, place, and the passage on one line.

    A record without a title has its uri as title, and the uri is not repeated.
    """
    where = place(hit)
    if _is_record(hit) and hit.title in ("", hit.uri):
        where = _of_index(hit) + _place_in_file(hit)
    yield f"{rank:>2}  {_score(hit)}  {printable(hit.title or shown(hit.uri))}"
    yield f"{_INDENT}{printable(where)}"
    for text, _ in _passages(rank, hit, presentation):
        yield f"{_INDENT}{text}"
    if family := _family(hit):
        yield f"{_INDENT}{family}"


def _print_on_terminal(hits: Hits, presentation: Presentation, screen: Terminal) -> None:
    """Print hits with lines broken at words."""
    from rich.text import Text

    for rank, hit in enumerate(hits, presentation.first_rank):
        lines = _head(rank, hit, screen)
        for shown_text, marks in _passages(rank, hit, presentation):
            text = Text(shown_text)
            for start, end in marks:
                text.stylize("bold green", start, end)
            lines += screen.lines(text, _INDENT)
        if family := _family(hit):
            lines += screen.lines(Text(family), _INDENT)
        for label, reason in _reasons_if(hit, presentation):
            lines += screen.lines(Text(reason), label)
        click.echo("\n".join([*lines, ""]))
    if hits.answered is False:  # below the hits, where the cursor is
        click.echo("\n".join(screen.lines(Text(_NO_ANSWER, "bold yellow"))))


def _family(hit: Hit) -> str:
    """Return a line on the other hits of a family; empty if there are none."""
    if not hit.family_size:
        return ""
    names = [printable(short_path(uri) if os.path.isabs(uri) else uri) for uri in hit.family[:_LISTED_FAMILY]]  # noqa: PTH117
    if hit.family_indexes:
        names = [f"{index}: {name}" for index, name in zip(hit.family_indexes, names, strict=False)]
    more = ", …" if len(hit.family) > len(names) else ""
    return f"and {hit.family_size} more like this{': ' if names else ''}{', '.join(names)}{more}"


def _head(rank: int, hit: Hit, screen: Terminal) -> list[str]:
    """Return the lines above a passage on a terminal. If the title of a hit is its address, the address is written
    once."""
    from rich.style import Style
    from rich.text import Text

    head, named = f"{rank:>2}  {_score(hit)}  ", _is_named_by(hit)
    link = Style(bold=named, dim=not named, link=link_address(hit.path))
    where = Text(f"{_of_index(hit)}{printable(_address(hit))}{_position(hit)}", link)
    rest = Text(printable(_below(hit)), "dim")
    title = [] if named else screen.lines(Text(printable(hit.title), "bold"), head, _LONGEST_TITLE)
    margin = head if named else _INDENT
    together = Text.assemble(where, "  ", rest)
    if rest and len(margin) + together.cell_len <= screen.width and (_is_record(hit) or not named):
        return [*title, *screen.lines(together, margin)]
    return [*title, *screen.lines(where, margin), *screen.lines(rest, _INDENT)]


def _score(hit: Hit) -> str:
    """Return the score. Hybrid and reranked hits also show the cosine, because it says more about how near they are."""
    if hit.cosine is None or abs(hit.score - hit.cosine) < 0.0005:
        return f"{hit.score:.3f}"
    return f"{hit.score:.3f} (cosine {hit.cosine:.3f})"


def _passages(rank: int, hit: Hit, presentation: Presentation) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    """Yield the part of the passage to show with its marks, or the whole passage between its neighbours."""
    surroundings = presentation.surroundings.get(rank)
    if surroundings is None:
        part = _part_of(hit, presentation.stem)
        yield printable(part.text), part.marks  # printable() replaces each character by one, so that the marks fit
        return
    for text in surroundings.before:
        yield printable(_flat(text, hit)), ()
    part = _part_of(hit, presentation.stem, len(hit.text))
    yield printable(part.text), part.marks
    for text in surroundings.after:
        yield printable(_flat(text, hit)), ()


def _flat(text: str, hit: Hit) -> str:
    from indexer.passages.cut import text_for_people
    from likewise.shell.snippets import snippet

    return snippet(text_for_people(text, hit.format), (), len(text)).text


def _part_of(hit: Hit, stem: Callable[[str], Hashable], width: int | None = None) -> Snippet:
    """Return the part of a hit's passage that a person sees."""
    from indexer.passages.cut import text_for_people
    from likewise.shell.snippets import WIDTH, snippet

    why = hit.why or {}
    sentence = why.get("sentence")
    return snippet(
        _with_cells(text_for_people("".join(hit.text[start:end] for start, end in hit.shown), hit.format), hit),
        (word["text"] for word in why.get("words", ())),
        width or WIDTH,
        stem=stem,
        sentence=text_for_people(sentence["text"], hit.format) if sentence else "",
    )


def _with_cells(text: str, hit: Hit) -> str:
    """Return a passage with marks between the members of a record, and between the cells and rows of a table."""
    from indexer.records import RECORD_FORMATS

    if hit.line is not None:
        return text
    lines = text.splitlines()
    if hit.format in RECORD_FORMATS and all(": " in line for line in lines):
        return " · ".join(lines)
    if hit.heading.lower().endswith((".csv", ".tsv")):  # attached to a mail
        text = "\n\n".join(map(_with_tabs, text.split("\n\n")))
    return re.sub(r"(\t.*)\n(?=.*\t)", r"\1 / ", text).replace("\t", " | ")


def _with_tabs(paragraph: str) -> str:
    """Return the lines of a table with tabs between the cells. Another paragraph is not changed."""
    import csv

    lines = paragraph.splitlines()
    delimiter = max(",;\t", key=paragraph.count)
    if len(lines) < 2 or not all(delimiter in line for line in lines):
        return paragraph
    return "\n".join("\t".join(row) for row in csv.reader(lines, delimiter=delimiter))


def _reasons_if(hit: Hit, presentation: Presentation) -> Iterable[tuple[str, str]]:
    return _reasons(hit) if presentation.explain else ()


def _reasons(hit: Hit) -> Iterable[tuple[str, str]]:
    """Yield the label and the text of each reason of the score."""
    from indexer.passages.cut import text_for_people

    why, reranked = dict(hit.why or {}), ""
    if first := why.get("first"):
        why |= first
        reranked = f"reranked from rank {first['rank']}, where its score was {first['score']:.3f} = "
    values = {"cosine": why.get("cosine"), "words": why.get("bm25")}
    labels, weights = {"cosine": "cosine", "words": "BM25"}, why.get("weights", {})
    parts = [
        f"{part:.3f} from {labels[name]} {values[name]:.3f} at weight {weights[name]:.2f}"
        for name, part in why.get("contributions", {}).items()
    ]
    yield "    why       ", f"{reranked}{' + '.join(parts)}"
    if (weight := why.get("newer")) is not None:
        yield "    newer     ", f"weight {weight:.2g} for the age of the document, in the numbers above"
    if words := list(dict.fromkeys(word["text"].casefold() for word in why.get("words", ()))):
        yield "    words     ", printable(", ".join(words))
    for condition in why.get("conditions", ()):
        places = ", ".join(dict.fromkeys(" ".join(place["text"].split()) for place in condition["places"]))
        where = f"here as {places}" if places else "in the title or elsewhere in the document"
        yield (
            "    condition ",
            printable(f"{condition['text']} {'is in none of it' if condition['excluded'] else where}"),
        )
    if sentence := why.get("sentence"):
        text = " ".join(text_for_people(sentence["text"], hit.format).split())
        yield "    sentence  ", f"{printable(text)} ({sentence['cosine']:.3f})"


def place(hit: Hit) -> str:
    """Return where the passage is: path:line, path and page, or the uri; with its heading."""
    if _is_record(hit):
        return f"{_of_index(hit)}{shown(hit.uri)} {_place_in_file(hit)}"
    where = f"{_of_index(hit)}{shown(hit.uri)}{_position(hit)}"
    return f"{where}  {heading}" if (heading := _heading(hit)) else where


def _of_index(hit: Hit) -> str:
    """Return the name of the index before an address, if several were asked."""
    return "" if hit.index is None else f"{hit.index}: "


def _place_in_file(hit: Hit) -> str:
    """Return the file of a record, with the position and the heading of the passage."""
    where = f"in {shown(hit.path or '')}{_position(hit)}"
    return f"{where}  {heading}" if (heading := _heading(hit)) else where


def _is_record(hit: Hit) -> bool:
    """Return whether the uri does not name the file that the hit is in."""
    return bool(hit.path) and hit.uri != hit.path and not hit.uri.startswith(hit.path or "")


def _address(hit: Hit) -> str:
    """Return the uri. A path has its shortest form."""
    if hit.path and hit.uri.startswith(hit.path) and os.path.isabs(hit.path):  # noqa: PTH117
        return short_path(hit.path) + hit.uri[len(hit.path) :]
    return hit.uri


def _position(hit: Hit) -> str:
    line = f":{hit.line}" if hit.line is not None else ""
    noun = "slide" if hit.format in ("pptx", "odp") else "page"
    page = f", {noun} {hit.page}" if hit.page is not None else ""
    return f"{line}{page}{' (gone)' if hit.gone else ''}"


def _below(hit: Hit) -> str:
    """Return the file of a record, and the headings above the passage."""
    parts = [f"in {short_path(hit.path or '')}"] if _is_record(hit) else []
    return "  ".join(filter(None, [*parts, _heading(hit)]))


def _heading(hit: Hit) -> str:
    """Return the headings above the passage that are not the title."""
    first, _, rest = hit.heading.partition(" > ")
    return rest if first == hit.title else hit.heading


def _is_named_by(hit: Hit) -> bool:
    """Return whether the title says no more than the address: it is missing, the uri, or the name of the file."""
    if not hit.title or hit.title == hit.uri:
        return True
    name = os.path.basename(hit.uri)  # noqa: PTH119
    return hit.uri == hit.path and hit.title in (name, os.path.splitext(name)[0])  # noqa: PTH122
