"""The invisible parts of reStructuredText and Markdown: targets of links, names of roles, and comments.

These parts are not embedded, not indexed as words and not shown. Code, header fields and the content of directives
stay. The marks of directives, labels and substitutions, and the roles of MyST, are only not shown. No character
of a document changes, so that offsets stay true. docs/decisions.md says why docutils does not do it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

from indexer.lazy_pattern import lazy_pattern
from indexer.passages.front_matter import NEWLINE, read_front_matter
from indexer.passages.subtitles import subtitle_marks

Range = tuple[int, int]
"""Start and end of characters, in code points."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """A text: its `source`, the `hidden` ranges of the source, in order and without overlaps, and the visible
    `text`."""

    source: str
    hidden: tuple[Range, ...]
    text: str
    _removed: tuple[int, ...]  # how many characters are hidden before each hidden range, and in all

    @classmethod
    def read(cls, source: str, format_: str | None, *, for_people: bool = False) -> VisibleText:
        """Return the visible text of a document, or of a passage as if it began outside of a code block.

        Args:
            for_people: hide the marks of Sphinx and MyST too, which are embedded: directives, roles and labels.
        """
        hidden = hidden_ranges(source, format_, for_people=for_people)
        removed = (0, *accumulate(end - start for start, end in hidden))
        return cls(source, hidden, "".join(_visible_parts(source, hidden)), removed)

    def part(self, start: int, end: int) -> str:
        """Return the visible part of `source[start:end]`. If anything is hidden, surrounding white space is removed."""
        part = self.text[self.to_visible(start) : self.to_visible(end)]
        return part if len(part) == end - start else part.strip()

    def to_source(self, offset: int) -> int:
        """Return where a character of `text` is in the source."""
        numbers = range(len(self.hidden))
        number = bisect_right(numbers, offset, key=lambda number: self.hidden[number][0] - self._removed[number])
        return offset + self._removed[number]

    def to_visible(self, offset: int) -> int:
        """Return where a character of the source is in `text`: if it is hidden, the place of the next visible one."""
        number = bisect_right(self.hidden, offset, key=lambda hidden: hidden[1])
        end = self.hidden[number][0] if number < len(self.hidden) else len(self.source)
        return min(offset, end) - self._removed[number]

    def is_line_hidden(self, offset: int) -> bool:
        """Return whether a character of the source and the rest of its line are hidden."""
        line = _LINE.match(self.source, offset)
        return line is not None and bool(line[0]) and self.to_visible(offset) == self.to_visible(line.end())

    def with_hidden(self, start: int, end: int, *, first: bool) -> Range:
        """Return a passage, from its first to after its last visible character, with what is hidden around it.

        The mark that opens a link belongs to the passage that the link begins in. All other hidden text belongs to the
        passage before it. Hidden text at the beginning belongs to the first passage.
        """
        if start and not self.source[start - 1].isspace() and (opening := self._hidden_at(start - 1)):
            start = opening[0]
        if first and (begin := _NOT_BLANK.search(self.source)) and self._hidden_at(begin.start()):
            start = min(start, begin.start())
        while (following := _NOT_BLANK.search(self.source, end)) and (hidden := self._hidden_at(following.start())):
            # The line end of a target or a comment is hidden with it, and is left out here.
            opens_link = not self.source[hidden[1] - 1].isspace() and _NOT_BLANK.match(self.source, hidden[1])
            if opens_link and hidden[0] > end:
                break
            end = hidden[0] + len(self.source[slice(*hidden)].rstrip())
        return start, end

    def _hidden_at(self, offset: int) -> Range | None:
        """Return the range in which a character of the source is hidden; None for a visible one."""
        number = bisect_right(self.hidden, offset, key=lambda hidden: hidden[1])
        return self.hidden[number] if number < len(self.hidden) and self.hidden[number][0] <= offset else None


def hidden_ranges(text: str, format_: str | None, *, for_people: bool = False) -> tuple[Range, ...]:
    """Return what is hidden in a text, in order; empty if nothing else has a letter or digit."""
    ranges: list[Range] = []
    rst, markdown = partial(_rst, for_people=for_people), partial(_markdown, for_people=for_people)
    finders: dict[str, Callable[[str], Iterable[Range]]] = {
        "latex": _latex_accents,
        "rst": rst,
        **dict.fromkeys(("markdown", "ipynb", "canvas"), markdown),
        "subtitles": subtitle_marks,
    }
    for start, end in sorted(finders[format_](text)) if format_ in finders else ():
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], end)
        elif start < end:
            ranges.append((start, end))
    return tuple(ranges) if ranges and any(map(str.isalnum, chain.from_iterable(_visible_parts(text, ranges)))) else ()


def _visible_parts(text: str, hidden: Sequence[Range]) -> list[str]:
    borders = [(0, 0), *hidden, (len(text), len(text))]
    return [text[end:start] for (_, end), (start, _) in pairwise(borders)]


# LaTeX. The letter of an accent remains: a search by words leaves accents out, and stems ä, ö and ü as a, o and u.

_LATEX_LETTER = r"""\\(?: (?: [\"'`^~=.]\s* | [uvHcdbkr](?: [ \t]+ | (?=\{) ) )
      (?: \{\s*\\?[A-Za-z]\s*\} | \\[ij](?![A-Za-z])(?:\{\}|[ \t]+)? | [A-Za-z] )
    | (?: ss|SS|ae|AE|oe|OE|aa|AA|[oOlLij] )(?![A-Za-z])(?:\{\}|[ \t]+)? )"""
_LATEX_ACCENT = lazy_pattern(rf"\{{{_LATEX_LETTER}\s*\}} | {_LATEX_LETTER}", re.VERBOSE)
_LATEX_CAPITALS = lazy_pattern(r"(?<![A-Za-z}\]])(\{)[A-Z]+(\})(?=[a-z{])")
"""Capitals that BibTeX keeps: {B}ayes."""
_LATEX_PAIRS = ("ss", "SS", "ae", "AE", "oe", "OE")


def _latex_accents(text: str) -> Iterator[Range]:
    """Yield the commands and braces around letters: of \\"o, {\\'e} and \\v{s} the letter remains, of \\ss both."""
    for match in _LATEX_ACCENT.finditer(text):
        written = match[0].rstrip("{} \t\r\n")
        letters = 2 if written.endswith(_LATEX_PAIRS) and written[-3] == "\\" else 1
        yield match.start(), match.start() + len(written) - letters
        yield match.start() + len(written), match.end()
    for capitals in _LATEX_CAPITALS.finditer(text):
        yield from (capitals.span(1), capitals.span(2))


_NOT_BLANK = lazy_pattern(r"\S")
_LINE = lazy_pattern(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_BACKQUOTES = lazy_pattern("`+")


# reStructuredText. Blocks are recognised by their first line and their indentation, as its specification says:
# https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#explicit-markup-blocks

_NAME = r"[^\W_]+(?:[-._+:][^\W_]+)*"
_BLOCK = lazy_pattern(
    rf"""(?P<target> __[ \t] | \.\.[ \t]++_(?![ \t]|$) )
    | \.\.(?:[ \t]++|$) (?:
        (?P<footnote> \[(?:\#|\*|\d+|\#?\w+(?:[-._+:]\w+)*)\](?:[ \t]|$) )
      | (?P<substitution> \|(?![ \t])[^|]*\|[ \t]++ )?+ (?: (?P<directive>{_NAME})[ \t]?::(?:[ \t]++|$) )?+ )""",
    re.VERBOSE,
)
_ADORNMENT = lazy_pattern(r"([!-/:-@\[-`{-~])\1{2,}$", re.ASCII)
_MARKERS = lazy_pattern(r"(?:(?:[-*+•‣⁃]|\(?(?:\d+|[a-zA-Z]|[ivxlcdm]+|[IVXLCDM]+|#)[.)])[ \t]+)*+")
"""The marks of list items that begin a line. The text of an item is indented by the width of its mark."""
_LITERAL_DIRECTIVES = """
code code-block sourcecode parsed-literal raw math literal literalinclude include highlight productionlist
doctest testcode testsetup testcleanup testoutput ipython jupyter-execute prompt command-output program-output
plot graphviz graph digraph mermaid uml
""".split()  # noqa: SIM905
"""Directives whose content is not reStructuredText or is shown literally."""
_OPENING = lazy_pattern(r"(?<![^\W_])(?<![\\`])`++(?=\S)")
_CLOSINGS = {1: lazy_pattern(r"(?<=[^\s`])`(?!`)"), 2: lazy_pattern(r"(?<=[^\s`])``++")}
"""The end of a phrase in single backquotes, and of a phrase in two or more backquotes."""
_ROLE_BEFORE = lazy_pattern(rf":({_NAME}):$")
_AFTER = lazy_pattern(rf":{_NAME}:|__?")
_MAX_ROLE_CHARACTERS = 64


_WITHOUT_TEXT = {*_LITERAL_DIRECTIVES, "image", "index"}
"""Directives whose first lines a person does not see."""
_OPTIONS = r"(?:\r?\n[ \t]*:[\w-]+:(?:[ \t\r].*)?$)*"
_SPHINX = lazy_pattern(
    rf"""(?<![\w|`\\]) (\|) (?![ ])[^|\n]+(?<![ ]) (\|) (?![\w|])  # a substitution
    | ^[ \t]* (\.\.[ \t]+) [\w:+-]+[ ]? (:): .* ({_OPTIONS})  # a directive with options""",
    re.VERBOSE | re.MULTILINE,
)


class _Line(NamedTuple):
    start: int
    end: int  # with its line end
    text: str  # without indentation and trailing blanks
    indent: int


def _rst(text: str, *, for_people: bool) -> Iterator[Range]:
    if ".." not in text and "`" not in text and "__ " not in text:
        return
    lines = [
        _Line(*match.span(), match[0].strip(), len(match[0]) - len(match[0].lstrip())) for match in _LINE.finditer(text)
    ]
    end = 0
    while (number := end) < len(lines):
        line, end = lines[number], number + 1
        block = _BLOCK.match(line.text)
        directive = (block["directive"] or "").lower() if block else ""
        first = line.start + line.indent + (block.end() if block else 0)
        has_no_text = block and (block["substitution"] or directive in _WITHOUT_TEXT)
        head = lines[_paragraph(lines, end, line.indent + 1) - 1].end if for_people and has_no_text else line.start
        yield line.start, head
        if block and block["target"]:
            end = _indented(lines, end, line.indent, blank=False)
            yield line.start, lines[end - 1].end
        elif directive in _LITERAL_DIRECTIVES:
            end = _indented(lines, end, line.indent)
        elif directive in ("image", "figure"):
            yield first, line.start + line.indent + len(line.text)
            while end < len(lines) and lines[end].text.startswith(":") and lines[end].indent > line.indent:
                if lines[end].text.split(None, 1)[0] == ":target:":
                    yield lines[end].start, lines[end].end
                end += 1
        elif block and not (directive or block["footnote"] or block["substitution"]):
            if line.text != ".." or (end < len(lines) and lines[end].text):
                end = _indented(lines, end, line.indent)
            yield line.start, lines[end - 1].end
        elif line.text:
            end = _paragraph(lines, end, line.indent + bool(block))
            last = lines[end - 1]
            if not line.text.startswith(">>>"):
                yield from _rst_inline(text, first, last.end)
                yield from _groups(_SPHINX, text, line.start, last.end) if for_people else ()
            if text[first : last.end].rstrip().endswith("::"):
                markers = None if block and last is line else _MARKERS.match(last.text)
                end = _literal(lines, end, last.indent + (markers.end() if markers else 0))


def _paragraph(lines: list[_Line], number: int, least: int) -> int:
    """Return the end of the paragraph that may begin before this line: a blank line or a smaller indent ends it."""
    while number < len(lines) and lines[number].text and lines[number].indent >= least:
        if _ADORNMENT.match(lines[number - 1].text):  # a heading needs no blank line below it
            break
        number += 1
    return number


def _indented(lines: list[_Line], number: int, indent: int, *, blank: bool = True) -> int:
    """Return the end of the lines from a number on that are indented more, or are blank between such lines."""
    end = number
    while number < len(lines):
        line, number = lines[number], number + 1
        if line.text and line.indent > indent:
            end = number
        elif line.text or not blank:
            break
    return end


def _literal(lines: list[_Line], number: int, indent: int) -> int:
    """Return the end of the literal block below a paragraph: its lines are indented more, or begin with one mark."""
    end = _indented(lines, number, indent)
    below = next((below for below in range(number, len(lines)) if lines[below].text), number)
    if below == number or end > number:
        return number if below == number else end
    quote = lines[below].text[0]
    if lines[below].indent == indent and not quote.isalnum():
        while below < len(lines) and lines[below].text.startswith(quote):
            below += 1
        return below
    return number


def _rst_inline(text: str, start: int, end: int) -> Iterator[Range]:
    """Yield what is hidden of the phrases in backquotes between two offsets."""
    closings = dict(_CLOSINGS)  # a closing that no longer matches is removed, and not searched again
    while opening := _OPENING.search(text, start, end):
        start, marks = opening.end(), min(len(opening[0]), 2)
        if marks not in closings:
            continue
        if (closing := closings[marks].search(text, start, end)) is None:
            del closings[marks]
            continue
        start = closing.end()
        if marks == 1:
            yield from _phrase(text, *opening.span(), *closing.span())


def _phrase(text: str, begin: int, inner: int, stop: int, after: int) -> Iterator[Range]:
    """Yield the hidden ranges of a phrase: its target and the name of its role. Start and end of its backquotes are
    given."""
    before = _ROLE_BEFORE.search(text[max(0, begin - _MAX_ROLE_CHARACTERS) : begin])
    follows = None if before else _AFTER.match(text, after, after + _MAX_ROLE_CHARACTERS)
    role = before or (follows if follows and follows[0][0] == ":" else None)
    target = text.rfind("<", inner, stop) if text[stop - 1] == ">" else -1
    shown = len(text[inner : max(target, inner)].rstrip())
    if before and target < 0 and before[1].lower() in ("pep", "rfc"):  # :pep:`8` is read as PEP 8
        yield begin - len(before[0]), begin - len(before[0]) + 1
        yield begin, inner
        yield stop, after
    elif role or (follows and shown):
        # "!" and "~" before a name ask for no link, or for its last part.
        yield begin - len(before[0]) if before else begin, inner + (role is not None and text[inner] in "!~")
        yield inner + shown if shown else stop, follows.end() if follows else after


# Markdown. markdown-it-py tells blocks and definitions of links by their lines; it gives no offsets within a line.

_MYST = lazy_pattern(
    rf"""(?<!`) (\{{[\w:+.-]+\}}`[!~]?) [^`<]{{0,500}}? (\s{{0,9}}(?:<[^<>`]{{0,500}}>)?`)  # a role
    | (?<![`{{]) (\{{\{{[ ]*) [\w.-]+ ([ ]*\}}\}})  # a substitution
    | ^[ \t>]*+ (?:
        (\([^()\s]+\)=)[ \t\r]*$  # a label
      | ((?:`{{3,}}|:{{3,}})[ \t]*\{{[^{{}}\n]+\}}) .* ({_OPTIONS})  # a directive
      | (`{{3,}}\w*|:{{3,}})[ \t\r]*$ )""",
    re.VERBOSE | re.MULTILINE,
)
"""MyST: https://myst-parser.readthedocs.io/en/latest/syntax/syntax.html"""
_LITERAL_HTML = lazy_pattern(r"\s*<(?:script|pre|style|textarea)\b", re.IGNORECASE)
_COMMENT = lazy_pattern("<!--")
_MARK = lazy_pattern(r"\\.|`+|!\[|\[|\]|<!--", re.DOTALL)
_LABEL = lazy_pattern(r"\[((?:[^\[\]\\]|\\.){0,999}+)\]", re.DOTALL)
_MAX_LABEL_CHARACTERS = 999
_BLANK = r"(?:[ \t]|[\r\n][ \t>]*+)"  # with the marks of a quotation
_TITLE = r""" (?: "(?:[^"\\]|\\[\s\S])*+" | '(?:[^'\\]|\\[\s\S])*+' | \((?:[^()\\]|\\[\s\S])*+\) ) """
_BARE_TARGET = ""
for _ in range(9):  # with 8 levels of parentheses; CommonMark asks for three, and each slows long texts of "(" down
    _BARE_TARGET = rf"(?: [^\s()\\\x00-\x1f]++ | \\\S?+ | \({_BARE_TARGET}\) )*+"
_TARGET = lazy_pattern(
    rf"""\( {_BLANK}*+ (?: <(?:[^<>\\\r\n]|\\.)*+> | (?!<) {_BARE_TARGET} )
    (?: {_BLANK}++ (?: {_TITLE} {_BLANK}*+ )? )? \)""",
    re.VERBOSE,
)


def _groups(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Range]:
    """Yield the places of all groups of a pattern between two offsets."""
    for match in pattern.finditer(text, start, end):
        yield from (match.span(group) for group in range(1, pattern.groups + 1) if match[group])


def _markdown(text: str, *, for_people: bool) -> Iterator[Range]:
    myst = ("{", ":::", ")=") if for_people else ()
    if not any(mark in text for mark in ("](", "][", "]:", "<!--", *myst)):
        return
    from markdown_it import MarkdownIt
    from markdown_it.common.utils import normalizeReference

    body = front.blanked(text) if (front := read_front_matter(text)) else text
    starts = [0, *(newline.end() for newline in NEWLINE.finditer(text)), len(text)]
    results: dict[str, Any] = {}
    tokens = MarkdownIt("commonmark").disable("inline").parse(body, results)
    references: dict[str, Any] = results.get("references", {})
    for definition in (*references.values(), *results.get("duplicate_refs", ())):
        start, end = (starts[line] for line in definition["map"])
        if not text[start:end].lstrip(" \t>").startswith("[^"):  # a footnote, which is text
            yield start, end
    for token in tokens:
        if token.map is None or token.type not in ("html_block", "inline", "fence"):
            continue
        start, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        if for_people and token.info.startswith("{") and token.info[1:].split("}")[0] in _WITHOUT_TEXT:
            yield from ((start, starts[token.map[0] + 1]), (starts[token.map[1] - 1], end))
        elif for_people and (token.type == "inline" or token.info.startswith("{")):
            yield from _groups(_MYST, text, start, end)
        if token.type == "inline":
            yield from _links(text, start, end, lambda label: normalizeReference(label) in references)
        elif token.type == "html_block" and not _LITERAL_HTML.match(text, start):
            yield from _links(text, start, end, lambda label: False, _COMMENT)


def _links(
    text: str, start: int, end: int, is_defined: Callable[[str], bool], marks: re.Pattern[str] = _MARK
) -> Iterator[Range]:
    """Yield the brackets and targets of links and images, and the comments, between two offsets.

    Args:
        is_defined: whether the document defines the target of a label.
        marks: the pattern of links, images and comments.
    """
    code: dict[int, list[int]] = {}  # where runs of backquotes begin, by their length
    for run in _BACKQUOTES.finditer(text, start, end):
        code.setdefault(len(run[0]), []).append(run.start())
    last_close = text.rfind("-->", start, end)  # a comment that is not closed hides nothing: it may be a slip
    opened: list[Range] = []
    inside_link = 0  # number of outer brackets that hold a link, and so cannot be links themselves
    while mark := marks.search(text, start, end):
        begin, start = mark.span()
        match mark[0][0]:
            case "`":
                runs = code.get(start - begin, [])
                following = bisect_right(runs, begin)
                if following < len(runs):
                    start = runs[following] + start - begin
            case "<" if begin + 2 <= last_close:
                start = text.index("-->", begin + 2) + 3
                yield begin, start
            case "[" | "!":
                opened.append((begin, start))
            case "]" if opened:
                outer, inner = opened.pop()
                is_image = inner - outer == 2
                is_inactive = len(opened) < inside_link and not is_image
                inside_link = min(inside_link, len(opened))
                if is_inactive:
                    continue
                shown = text[inner:begin] if begin - inner <= _MAX_LABEL_CHARACTERS else ""
                target = _TARGET.match(text, start, end)
                if not target and (label := _LABEL.match(text, start, end)) and is_defined(label[1].strip() or shown):
                    target = label
                if target:
                    yield outer, inner
                    yield begin, (start := target.end())
                if not is_image and (target or is_defined(shown)):
                    inside_link = len(opened)
