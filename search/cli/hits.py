"""Printing hits: as text for people, or as JSON for programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from search.cli.output import printable, say, say_json, shown, warn, warn_of
from search.cli.terminal import Terminal, break_lines, columns, short_path, styled, terminal

if TYPE_CHECKING:
    from search.cli.context import Surroundings
    from search.hits import Hit, Hits
    from search.snippets import Snippet

_NO_ANSWER = "nothing here seems to answer this: the best hit is no nearer than those of unrelated questions"
_INDENT = "    "
_ALIKE = 0.8
"""Share of the words of two passages that is common to both where they are folded on a terminal."""
_LONGEST_TITLE = 3
"""Lines of a title on a terminal; some are a paragraph."""


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
    if as_json:
        answer = hits.as_json()
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
            click.echo("\n".join([*_lines(rank, hit, presentation), *_reasons_if(hit, presentation), ""]))


def stem_of(language: str) -> Callable[[str], Hashable]:
    """Return what maps a word to its stem, as a search by words does in this language."""
    from indexer.stores.analysis import stored_analysis

    analysis = stored_analysis(language)
    return lambda word: tuple(analysis.terms(word)) or word.casefold()


def _describe_no_hits(hits: Hits) -> str:
    if hits.matched:
        return "no hits"
    if hits.mode == "words":
        return "no hits: no document holds a word of the question, or the filter leaves none that does"
    if not hits.query:
        return "nothing to rank: there is no other document, or none passes the filter"
    return "nothing to rank: the index is empty, or no document passes the filter"


def _lines(rank: int, hit: Hit, presentation: Presentation) -> Iterable[str]:
    """Yield the lines of a hit in a file or a pipe: title, place, and the passage on one line.

    Where a record has no title of its own, its uri is in the place of one, and is not written again.
    """
    where = _place_in_file(hit) if _is_record(hit) and hit.title in ("", hit.uri) else place(hit)
    yield f"{rank:>2}  {_score(hit)}  {click.style(printable(hit.title or shown(hit.uri)), bold=True)}"
    yield f"{_INDENT}{click.style(printable(where), dim=True)}"
    for text, marks in _passages(rank, hit, presentation):
        yield f"{_INDENT}{styled(text, marks, 0, len(text))}"


def _print_on_terminal(hits: Hits, presentation: Presentation, screen: Terminal) -> None:
    """Print hits with lines broken at words, and hits that are nearly the same folded into one."""
    for rank, hit, alike in folded(hits.hits, presentation.first_rank):
        lines = [*_terminal_lines(rank, hit, presentation, screen)]
        if alike:
            names = ", ".join(dict.fromkeys(printable(_address(other)) for other in alike))
            lines += _indented(f"and {len(alike)} more like this: {names}", screen)
        for line in _reasons_if(hit, presentation):
            lines += _broken(line, screen.width, 14)
        click.echo("\n".join([*lines, ""]))
    if hits.answered is False:  # below the hits, where the cursor is
        click.echo(
            "\n".join(click.style(line, fg="yellow", bold=True) for line in _broken(_NO_ANSWER, screen.width, 0))
        )


def folded(hits: Sequence[Hit], first_rank: int = 1) -> list[tuple[int, Hit, list[Hit]]]:
    """Return the rank of each hit that is printed, the hit, and the later ones whose passage is nearly the same."""
    from search.snippets import words_of

    groups: list[tuple[int, Hit, list[Hit], frozenset[tuple[str, int]]]] = []
    for rank, hit in enumerate(hits, first_rank):
        words = words_of(hit.text)
        same = next((group for group in groups if _are_alike(words, group[3])), None)
        if same is None:
            groups.append((rank, hit, [], words))
        else:
            same[2].append(hit)
    return [(rank, hit, alike) for rank, hit, alike, _ in groups]


def _are_alike(first: frozenset[tuple[str, int]], second: frozenset[tuple[str, int]]) -> bool:
    common = len(first & second)
    return common >= _ALIKE * (len(first) + len(second) - common) > 0


def _terminal_lines(rank: int, hit: Hit, presentation: Presentation, screen: Terminal) -> Iterator[str]:
    """Yield the lines of a hit on a terminal. Where its title is its address, this is written once."""
    address, title = printable(_address(hit)), printable(hit.title)
    rest = printable(_below(hit))
    head = f"{rank:>2}  {_score(hit)}  "
    if _is_named_by(hit):
        place_, below = f"{address}{_position(hit)}", rest
        spans = [*break_lines(place_, screen.width - columns(head))]
        if _is_record(hit) and columns(f"{head}{place_}  {rest}") <= screen.width:
            linked = screen.link(click.style(place_, bold=True), hit.path, hit.line)
            yield f"{head}{linked}  {click.style(rest, dim=True)}"
            spans, below = [], ""
        for number, (start, end) in enumerate(spans):
            line = screen.link(click.style(place_[start:end], bold=True), hit.path, hit.line)
            yield f"{head if not number else ' ' * columns(head)}{line}"
        if below:
            yield from (click.style(line, dim=True) for line in _indented(below, screen))
    else:
        spans = [*break_lines(title, screen.width - columns(head))]
        for number, (start, end) in enumerate(spans[:_LONGEST_TITLE]):
            cut = " …" if number == _LONGEST_TITLE - 1 and len(spans) > _LONGEST_TITLE else ""
            line = click.style(title[start:end] + cut, bold=True)
            yield f"{head if not number else ' ' * columns(head)}{line}"
        place_ = f"{address}{_position(hit)}"
        whole = f"{place_}  {rest}" if rest else place_
        if columns(whole) + len(_INDENT) <= screen.width:
            linked = screen.link(click.style(place_, dim=True), hit.path, hit.line)
            yield f"{_INDENT}{linked}{click.style(whole[len(place_) :], dim=True)}"
        else:
            for line in _indented(place_, screen):
                text = line[len(_INDENT) :]
                yield f"{_INDENT}{screen.link(click.style(text, dim=True), hit.path, hit.line)}"
            yield from (click.style(line, dim=True) for line in _indented(rest, screen))
    for text, marks in _passages(rank, hit, presentation):
        for start, end in break_lines(text, screen.width - len(_INDENT)):
            yield f"{_INDENT}{styled(text, marks, start, end)}"


def _indented(text: str, screen: Terminal) -> list[str]:
    return [f"{_INDENT}{text[start:end]}" for start, end in break_lines(text, screen.width - len(_INDENT))]


def _broken(line: str, width: int, indent: int) -> list[str]:
    """Return a line broken at words; the lines after the first are indented."""
    spans = [*break_lines(line, width)]
    if len(spans) < 2:
        return [line]
    first = line[: spans[0][1]]
    rest = line[spans[1][0] :]
    return [first, *(" " * indent + rest[start:end] for start, end in break_lines(rest, width - indent))]


def _score(hit: Hit) -> str:
    """Return the score, and beside that of a hybrid or reranked hit the cosine, which tells more of how near it is."""
    if hit.cosine is None or abs(hit.score - hit.cosine) < 0.0005:
        return f"{hit.score:.3f}"
    return f"{hit.score:.3f} (cosine {hit.cosine:.3f})"


def _passages(rank: int, hit: Hit, presentation: Presentation) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    """Yield the part of the passage to show with its marks, or the whole passage between its neighbours."""
    surroundings = presentation.surroundings.get(rank)
    if surroundings is None:
        part = part_of(hit, presentation.stem)
        yield printable(part.text), part.marks  # printable() replaces each character by one, so that the marks fit
        return
    for text in surroundings.before:
        yield printable(_flat(text, hit)), ()
    part = part_of(hit, presentation.stem, len(hit.text))
    yield printable(part.text), part.marks
    for text in surroundings.after:
        yield printable(_flat(text, hit)), ()


def _flat(text: str, hit: Hit) -> str:
    from indexer.markup import without_markup
    from search.snippets import snippet

    return snippet(without_markup(text, hit.format), (), len(text)).text


def part_of(hit: Hit, stem: Callable[[str], Hashable], width: int | None = None) -> Snippet:
    """Return the part of a hit's passage that a person sees."""
    from indexer.markup import without_markup
    from search.snippets import WIDTH, snippet

    why = hit.why or {}
    sentence = why.get("sentence")
    return snippet(
        without_markup(hit.text, hit.format),
        (word["text"] for word in why.get("words", ())),
        width or WIDTH,
        stem=stem,
        headings=(hit.title, hit.heading, *hit.heading.split(" > ")),
        sentence=without_markup(sentence["text"], hit.format) if sentence else "",
    )


def _reasons_if(hit: Hit, presentation: Presentation) -> Iterable[str]:
    return _reasons(hit) if presentation.explain else ()


def _reasons(hit: Hit) -> Iterable[str]:
    """Yield one line for each reason of the score."""
    from indexer.markup import without_markup

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
    yield f"    why       {reranked}{' + '.join(parts)}"
    if hit.percentile is not None:
        yield f"    rarity    nearer than {hit.percentile:.2f} % of random passages are to an unrelated question"
    if words := list(dict.fromkeys(word["text"].casefold() for word in why.get("words", ()))):
        yield f"    words     {printable(', '.join(words))}"
    if sentence := why.get("sentence"):
        text = " ".join(without_markup(sentence["text"], hit.format).split())
        yield f"    sentence  {printable(text)} ({sentence['cosine']:.3f})"


def place(hit: Hit) -> str:
    """Return where the passage is: path:line, path and page, or the uri; with its heading."""
    if _is_record(hit):
        return f"{shown(hit.uri)} {_place_in_file(hit)}"
    where = f"{shown(hit.uri)}{_position(hit)}"
    return f"{where}  {hit.heading}" if hit.heading else where


def _place_in_file(hit: Hit) -> str:
    """Return the file of a record, with the position and the heading of the passage."""
    where = f"in {shown(hit.path or '')}{_position(hit)}"
    return f"{where}  {hit.heading}" if hit.heading else where


def _is_record(hit: Hit) -> bool:
    """Return whether the uri does not name the file that the hit is in."""
    return bool(hit.path) and hit.uri != hit.path and not hit.uri.startswith(hit.path or "")


def _address(hit: Hit) -> str:
    """Return the uri, in its shortest form where it is a path."""
    if hit.path and hit.uri.startswith(hit.path) and os.path.isabs(hit.path):  # noqa: PTH117
        return short_path(hit.path) + hit.uri[len(hit.path) :]
    return hit.uri


def _position(hit: Hit) -> str:
    line = f":{hit.line}" if hit.line is not None else ""
    return line + (f", page {hit.page}" if hit.page is not None else "")


def _below(hit: Hit) -> str:
    """Return the file of a record, and the headings above the passage that are not the title."""
    headings = hit.heading.split(" > ") if hit.heading else []
    if headings and headings[0] == hit.title:
        del headings[0]
    parts = [f"in {short_path(hit.path or '')}"] if _is_record(hit) else []
    return "  ".join([*parts, " > ".join(headings)] if headings else parts)


def _is_named_by(hit: Hit) -> bool:
    """Return whether the title says no more than the address: it is missing, the uri, or the name of the file."""
    if not hit.title or hit.title == hit.uri:
        return True
    name = os.path.basename(hit.uri)  # noqa: PTH119
    return hit.uri == hit.path and hit.title in (name, os.path.splitext(name)[0])  # noqa: PTH122
