"""What a reader of reStructuredText and Markdown does not see: targets of links, names of roles, and comments.

They are left out of what is embedded, of the words that are indexed, and of what the shell shows. Nothing else is:
code, header fields and the content of directives stay. A document's text is never changed, only characters of it are
skipped, so that offsets in it stay true. docs/decisions.md says why docutils does not do this.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

Range = tuple[int, int]
"""Start and end of characters, in code points."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """A text, and what is left of it without hidden characters.

    Attributes:
        source: the whole text.
        hidden: what is left out of it: ranges in order, which neither touch nor overlap.
        text: the rest.
    """

    source: str
    hidden: tuple[Range, ...]
    text: str
    _starts: tuple[int, ...]  # of the parts that are left, in the source
    _offsets: tuple[int, ...]  # of the same parts in `text`

    @classmethod
    def read(cls, source: str, format_: str | None) -> VisibleText:
        """Return the visible text of a document or a passage of this format.

        A passage is read as if it began outside of a code block.
        """
        hidden = hidden_ranges(source, format_)
        starts = (0, *(end for _, end in hidden))
        ends = (*(start for start, _ in hidden), len(source))
        parts = [source[start:end] for start, end in zip(starts, ends, strict=True)]
        offsets = (0, *accumulate(map(len, parts[:-1])))
        return cls(source, hidden, "".join(parts) if hidden else source, starts, offsets)

    def part(self, start: int, end: int) -> str:
        """Return what is visible of `source[start:end]`."""
        first, last = self._hidden_after(start), bisect_left(self.hidden, (end, end))
        if first == last:
            return self.source[start:end]
        parts, position = [], start
        for begin, stop in self.hidden[first:last]:
            parts.append(self.source[position:begin])
            position = stop
        return "".join([*parts, self.source[position:end]]).strip()

    def to_source(self, offset: int) -> int:
        """Return where a character of `text` is in the source."""
        part = bisect_right(self._offsets, offset) - 1
        return self._starts[part] + offset - self._offsets[part]

    def to_visible(self, offset: int) -> int:
        """Return where a character of the source is in `text`: if it is hidden, the place of the next visible one."""
        part = bisect_right(self._starts, offset) - 1
        end = self.hidden[part][0] if part < len(self.hidden) else len(self.source)
        return self._offsets[part] + min(offset, end) - self._starts[part]

    def is_line_hidden(self, offset: int) -> bool:
        """Return whether a character of the source and the rest of its line are hidden."""
        hidden = self._hidden_at(offset)
        line = _LINE.match(self.source, offset)
        return hidden is not None and line is not None and hidden[1] >= line.end()

    def with_hidden(self, start: int, end: int, *, first: bool) -> Range:
        """Return a passage of the source with what is hidden around it.

        The mark that opens a link belongs to the passage that the link begins in. All else that is hidden belongs to
        the passage before it, and what the source begins with to the first.

        Args:
            start, end: of its first and after its last visible character, in the source.
            first: whether it is the first passage.
        """
        opening = self._hidden_at(start - 1) if start else None
        if opening is not None and not self.source[start - 1].isspace():
            start = opening[0]
        if first and (begin := _NOT_BLANK.search(self.source)) and self._hidden_at(begin.start()):
            start = min(start, begin.start())
        while (following := _NOT_BLANK.search(self.source, end)) and (hidden := self._hidden_at(following.start())):
            # The line end of a target or a comment is hidden with it, and is left out here.
            opens_link = not self.source[hidden[1] - 1].isspace() and _NOT_BLANK.match(self.source, hidden[1])
            if opens_link and hidden[0] > end:
                break
            end = hidden[1]
            while self.source[end - 1].isspace():
                end -= 1
        return start, end

    def _hidden_at(self, offset: int) -> Range | None:
        """Return the range in which a character of the source is hidden; None for a visible one."""
        number = self._hidden_after(offset)
        return self.hidden[number] if number < len(self.hidden) and self.hidden[number][0] <= offset else None

    def _hidden_after(self, offset: int) -> int:
        """Return the number of the first hidden range that ends after an offset in the source."""
        return bisect_right(self._starts, offset) - 1


def without_markup(text: str, format_: str | None) -> str:
    """Return what is visible of a passage; text of other formats than reStructuredText and Markdown is as it is."""
    return VisibleText.read(text, format_).part(0, len(text))


def hidden_ranges(text: str, format_: str | None) -> tuple[Range, ...]:
    """Return what is hidden in a text, in order; empty if nothing else has a letter or digit."""
    if format_ == "rst":
        found = _rst(text)
    elif format_ == "markdown":
        found = _markdown(text)
    else:
        return ()
    ranges: list[Range] = []
    for start, end in sorted(found):
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], end)
        elif start < end:
            ranges.append((start, end))
    borders = [(0, 0), *ranges, (len(text), len(text))]
    if any(_WORD_CHARACTER.search(text, end, start) for (_, end), (start, _) in pairwise(borders)):
        return tuple(ranges)
    return ()


_NOT_BLANK = re.compile(r"\S")
_WORD_CHARACTER = re.compile(r"[^\W_]")

# reStructuredText. Blocks are recognised by their first line and their indentation, as its specification says:
# https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#explicit-markup-blocks

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}$", re.ASCII)
_EXPLICIT = re.compile(r"\.\.(?:[ \t]+|$)")
_ANONYMOUS_TARGET = re.compile(r"__[ \t]")
_TARGET = re.compile(r"_(?![ \t]|$)")
_FOOTNOTE = re.compile(r"\[(?:#|\*|\d+|#?\w+(?:[-._+:]\w+)*)\](?:[ \t]|$)")
_SUBSTITUTION = re.compile(r"\|(?![ \t])[^|]*\|[ \t]+")
_DIRECTIVE = re.compile(r"([^\W_]+(?:[-._+:][^\W_]+)*)[ \t]?::(?:[ \t]+|$)")
_TARGET_OPTION = re.compile(r":target:(?:[ \t]|$)")
_IMAGES = frozenset({"image", "figure"})
_LITERAL_DIRECTIVES = frozenset(
    """
    code code-block sourcecode parsed-literal raw math literal literalinclude include highlight productionlist
    doctest testcode testsetup testcleanup testoutput ipython jupyter-execute prompt command-output program-output
    plot graphviz graph digraph mermaid uml
    """.split()  # noqa: SIM905
)
"""Directives whose content is not reStructuredText, or is shown as it is."""

_MARKER = re.compile(r"(?:[-*+•‣⁃]|\(?(?:\d+|[a-zA-Z]|[ivxlcdm]+|[IVXLCDM]+|#)[.)])[ \t]+")
"""What begins an item of a list; the item's text is indented by its width."""

_BACKQUOTES = re.compile("`+")
_ROLE_BEFORE = re.compile(r":([^\W_]+(?:[-._+:][^\W_]+)*):$")
_ROLE_AFTER = re.compile(r":[^\W_]+(?:[-._+:][^\W_]+)*:")
_MAX_ROLE_CHARACTERS = 64
_NAMED_NUMBER_ROLES = ("pep", "rfc")
"""Roles whose names are part of what is read: :pep:`8` is PEP 8."""


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int  # with its line end
    text: str  # without indentation and trailing blanks
    indent: int

    @property
    def first(self) -> int:
        """The offset of its first visible character."""
        return self.start + self.indent


def _rst(text: str) -> Iterator[Range]:
    if ".." not in text and "`" not in text and "__ " not in text:
        return
    lines = []
    for match in _LINE.finditer(text):
        stripped = match[0].strip()
        lines.append(_Line(match.start(), match.end(), stripped, len(match[0]) - len(match[0].lstrip())))
    number = 0
    while number < len(lines):
        line = lines[number]
        if not line.text:
            number += 1
        elif explicit := _EXPLICIT.match(line.text):
            number = yield from _explicit(text, lines, number, explicit.end())
        elif _ANONYMOUS_TARGET.match(line.text):
            end = _indented_lines(lines, number, blank=False)
            yield line.start, lines[end - 1].end
            number = end
        else:
            number = yield from _paragraph(text, lines, number, line.first, None)


def _explicit(text: str, lines: list[_Line], number: int, after: int) -> Generator[Range, None, int]:
    """Yield what is hidden in the block that begins with two dots; return the number of the line to go on with.

    Args:
        after: where the block's own text begins in the first line.
    """
    line = lines[number]
    rest, content = line.text[after:], line.first + after
    if _TARGET.match(rest):
        end = _indented_lines(lines, number, blank=False)
        yield line.start, lines[end - 1].end
        return end
    if (substitution := _SUBSTITUTION.match(rest)) is not None:
        rest, content = rest[substitution.end() :], content + substitution.end()
    if (directive := _DIRECTIVE.match(rest)) is not None:
        name = directive[1].lower()
        if name in _LITERAL_DIRECTIVES:
            return _indented_lines(lines, number, blank=True)
        if name in _IMAGES:
            yield content + directive.end(), content + len(rest)
            number += 1
            while number < len(lines) and lines[number].text.startswith(":") and lines[number].indent > line.indent:
                if _TARGET_OPTION.match(lines[number].text):
                    yield lines[number].start, lines[number].end
                number += 1
            return number
        return (yield from _paragraph(text, lines, number, content + directive.end(), line.indent))
    if substitution is not None or _FOOTNOTE.match(rest):
        return (yield from _paragraph(text, lines, number, content, line.indent))
    empty = not rest and (number + 1 == len(lines) or not lines[number + 1].text)
    end = number + 1 if empty else _indented_lines(lines, number, blank=True)
    yield line.start, lines[end - 1].end
    return end


def _indented_lines(lines: list[_Line], number: int, *, blank: bool) -> int:
    """Return the end of the lines that are indented below a line.

    Args:
        blank: go on after blank lines.
    """
    indent = lines[number].indent
    end = number = number + 1
    while number < len(lines) and (blank or lines[number].text):
        if lines[number].text:
            if lines[number].indent <= indent:
                break
            end = number + 1
        number += 1
    return end


def _paragraph(
    text: str, lines: list[_Line], number: int, start: int, indent: int | None
) -> Generator[Range, None, int]:
    """Yield what is hidden in a paragraph, up to a blank line or one that is indented less.

    Return the number of the line to go on with, after the literal block that may follow.

    Args:
        start: where the text of the paragraph begins in the first line.
        indent: of the explicit markup that the text belongs to, which ends at a line that is not indented more.
    """
    first = lines[number]
    least = first.indent if indent is None else indent + 1
    number += 1
    while number < len(lines) and lines[number].text and lines[number].indent >= least:
        if _ADORNMENT.match(lines[number - 1].text):  # a heading needs no blank line below it
            break
        number += 1
    last = lines[number - 1]
    if not first.text.startswith(">>>"):
        yield from _rst_inline(text, start, last.end)
    if not text[start : last.end].rstrip().endswith("::"):
        return number
    # A literal block is indented more than the text before it, or each of its lines begins with a punctuation mark.
    below = number
    while below < len(lines) and not lines[below].text:
        below += 1
    if below == len(lines) or below == number:
        return number
    text_indent = _text_indent(last) if indent is None or last is not first else indent
    if lines[below].indent > text_indent:
        while below < len(lines) and (not lines[below].text or lines[below].indent > text_indent):
            below += 1
        return below
    quote = lines[below].text[0]
    if lines[below].indent == text_indent and not quote.isalnum():
        while below < len(lines) and lines[below].text.startswith(quote):
            below += 1
        return below
    return number


def _text_indent(line: _Line) -> int:
    """Return how far the text of a line is indented, after the markers of lists that it begins with."""
    position = 0
    while marker := _MARKER.match(line.text, position):
        position = marker.end()
    return line.indent + position


def _rst_inline(text: str, start: int, end: int) -> Iterator[Range]:
    """Yield the targets within links and the marks of roles between two offsets."""
    runs = [match.span() for match in _BACKQUOTES.finditer(text, start, end)]
    number = 0
    closed = {1: True, 2: True}  # False where no later run of backquotes closes: then none is looked for again
    while number < len(runs):
        begin, inner = runs[number]
        marks = min(inner - begin, 2)
        number += 1
        opens = inner < end and not text[inner].isspace() and (begin == start or not _joins(text[begin - 1]))
        if not (opens and closed[marks]):
            continue
        close = number
        while close < len(runs) and (
            (marks == 2) != (runs[close][1] - runs[close][0] >= 2) or text[runs[close][0] - 1].isspace()
        ):
            close += 1
        if close == len(runs):
            closed[marks] = False
            continue
        number = close + 1
        if marks == 1:
            yield from _interpreted(text, begin, inner, *runs[close])


def _joins(character: str) -> bool:
    """Return whether a backquote after this character does not begin markup."""
    return character.isalnum() or character == "\\"


def _interpreted(text: str, begin: int, inner: int, stop: int, after: int) -> Iterator[Range]:
    """Yield what is hidden of one phrase in backquotes: its target, and the name of its role.

    Args:
        begin, inner: start and end of the backquote before it.
        stop, after: start and end of the backquote after it.
    """
    before = _ROLE_BEFORE.search(text[max(0, begin - _MAX_ROLE_CHARACTERS) : begin])
    role = before or _ROLE_AFTER.match(text, after, after + _MAX_ROLE_CHARACTERS)
    if not role and not text.startswith("_", after):
        return
    target = text.rfind("<", inner, stop) if text[stop - 1] == ">" else -1
    shown = len(text[inner : max(target, inner)].rstrip())
    if before and target < 0 and before[1].lower() in _NAMED_NUMBER_ROLES:
        yield begin - len(before[0]), begin - len(before[0]) + 1
        yield begin, inner
        yield stop, after
        return
    if not role and not shown:
        return
    if shown:
        yield inner + shown, stop
    # "!" and "~" before a name ask for no link, or for its last part.
    yield begin - len(before[0]) if before else begin, inner + (bool(role) and text[inner] in "!~")
    suffix = len(role[0]) if role and not before else 0
    while not role and suffix < 2 and text.startswith("_", after + suffix):
        suffix += 1
    yield stop, after + suffix


# Markdown. markdown-it-py tells blocks and definitions of links by their lines; it gives no offsets within a line.

_NEWLINE = re.compile(r"\r\n|\r|\n")
_FRONT_MATTER = re.compile(
    r"---[ \t]*(?:\r\n|\r|\n)\s*[\w-]+:(?:\s.{0,65536}?)?(?:\r\n|\r|\n)(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|$)", re.DOTALL
)
_LITERAL_HTML = re.compile(r"\s*<(?:script|pre|style|textarea)\b", re.IGNORECASE)
_MARK = re.compile(r"\\.|`+|!\[|\[|\]|<!--", re.DOTALL)
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){0,999}+)\]", re.DOTALL)
_BLANKS = re.compile(r"(?:[ \t]|[\r\n][ \t>]*+)*+")  # with the marks of a quotation
_ANGLE_TARGET = re.compile(r"<(?:[^<>\\\r\n]|\\.)*+>")
_LINK_TITLE = re.compile(
    r""" "(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+' | \((?:[^()\\]|\\.)*+\) """, re.DOTALL | re.VERBOSE
)
_TARGET_PART = re.compile(r"[^\s()\\\x00-\x1f]++|\\\S|[()\\]")
_MAX_LABEL_CHARACTERS = 999
_MAX_PARENTHESES = 8
"""Levels of parentheses in the target of a link; CommonMark asks for three. Each slows a text of nothing else down."""


def _markdown(text: str) -> Iterator[Range]:
    if not any(mark in text for mark in ("](", "][", "]:", "<!--")):
        return
    from markdown_it import MarkdownIt
    from markdown_it.common.utils import normalizeReference

    body = text
    if front := _FRONT_MATTER.match(text):
        body = "\n" * len(_NEWLINE.findall(front[0])) + text[front.end() :]
    starts = [0, *(newline.end() for newline in _NEWLINE.finditer(text)), len(text)]
    results: dict[str, Any] = {}
    tokens = MarkdownIt("commonmark").disable("inline").parse(body, results)
    references: dict[str, Any] = results.get("references", {})

    def is_defined(label: str) -> bool:
        return bool(references) and normalizeReference(label) in references

    for definition in (*references.values(), *results.get("duplicate_refs", ())):
        first, last = definition["map"]
        start = starts[first]
        if not text[start : starts[last]].lstrip(" \t>").startswith("[^"):  # a footnote, which is text
            yield start, starts[last]
    for token in tokens:
        if token.map is None or token.type not in ("html_block", "inline"):
            continue
        first, last = token.map
        start, end = starts[first], starts[min(last, len(starts) - 1)]
        if token.type == "inline":
            yield from _markdown_inline(text, start, end, is_defined)
        elif not _LITERAL_HTML.match(text, start):
            yield from _comments(text, start, end)


def _comments(text: str, start: int, end: int) -> Iterator[Range]:
    """Yield the comments of HTML between two offsets. One that is not closed hides nothing: it may be a slip."""
    while (begin := text.find("<!--", start, end)) >= 0 and (close := text.find("-->", begin + 2, end)) >= 0:
        start = close + 3
        yield begin, start


def _markdown_inline(text: str, start: int, end: int, is_defined: Callable[[str], bool]) -> Iterator[Range]:
    """Yield the brackets and targets of links and images, and the comments, between two offsets.

    Args:
        is_defined: whether the document defines the target of a label.
    """
    code: dict[int, list[int]] = {}  # where runs of backquotes begin, by their length
    for run in _BACKQUOTES.finditer(text, start, end):
        code.setdefault(len(run[0]), []).append(run.start())
    opened: list[Range] = []
    inside_link = 0  # so many of them, the outer ones, hold a link and can be none themselves
    comments_close = True
    while mark := _MARK.search(text, start, end):
        begin, start = mark.span()
        match mark[0][0]:
            case "`":
                runs = code.get(start - begin, [])
                following = bisect_right(runs, begin)
                if following < len(runs):
                    start = runs[following] + start - begin
            case "<":
                close = text.find("-->", begin + 2, end) if comments_close else -1
                comments_close = close >= 0
                if comments_close:
                    start = close + 3
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
                target = _target_end(text, start, end) or _label_end(text, start, end, shown, is_defined)
                if target is not None:
                    yield outer, inner
                    yield begin, target
                    start = target
                if not is_image and (target is not None or is_defined(shown)):
                    inside_link = len(opened)


def _label_end(text: str, start: int, end: int, shown: str, is_defined: Callable[[str], bool]) -> int | None:
    """Return where the label of a link ends that begins at an offset; None if it is not the label of a target."""
    label = _LABEL.match(text, start, end)
    return label.end() if label and is_defined(label[1].strip() or shown) else None


def _target_end(text: str, start: int, end: int) -> int | None:
    """Return where the target of a link, in parentheses, ends that begins at an offset; None if there is none."""
    if not text.startswith("(", start, end):
        return None
    position = _end(_BLANKS, text, start + 1, end)
    if text.startswith("<", position, end):
        if not (angle := _ANGLE_TARGET.match(text, position, end)):
            return None
        position = angle.end()
    else:
        depth = 0
        while part := _TARGET_PART.match(text, position, end):
            if part[0] == ")" and not depth:
                break
            depth += (part[0] == "(") - (part[0] == ")")
            if depth > _MAX_PARENTHESES:
                return None
            position = part.end()
        if depth:
            return None
    after = _end(_BLANKS, text, position, end)
    if after > position and (title := _LINK_TITLE.match(text, after, end)):
        after = _end(_BLANKS, text, title.end(), end)
    return after + 1 if text.startswith(")", after, end) else None


def _end(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Return where a pattern that also matches nothing ends."""
    match = pattern.match(text, start, end)
    return match.end() if match else start
