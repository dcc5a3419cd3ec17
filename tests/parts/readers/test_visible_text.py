"""Visible text: targets, names of roles and comments are left out, nothing else is, and offsets stay true."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from indexer import Document, Index
from indexer.passages.cut import PassageSettings, cut, embedded_texts, text_for_people, visible_text
from indexer.passages.markup import VisibleText, hidden_ranges
from indexer.sources import ReadOptions, open_sources
from indexer.sources.files.reading import read
from indexer.stores.addresses.open import holds_store
from search import Searcher

RST = """\
PEP: 8
Title: Names

.. A comment
   of two lines

   and a paragraph

.. _here:

Heading
=======
.. _b: http://b
.. _`c d`: http://c
   /more
__ http://e

See `the site <https://x.y/z>`_, `two
<http://w>`__, `here`_, :pep:`8` or :func:`~a.b`, :ref:`title <t>` and ``:pep:`8` <literal>``.

.. [1] Footnote `q <http://q>`_
.. |logo| image:: logo.png
.. note:: A note `n <http://n>`_

   .. inner comment
   .. figure:: f.png
      :alt: alternative
      :target: http://y

      Caption

   Code::

       .. _code: x
       `a <b>`_

.. tip::

   - item::

       .. code

     .. comment

.. code-block:: python

   .. _code2: x

>>> "`a <b>`_"

Quoted::

> `a <b>`_

..
   Local Variables:

..

   A quotation
"""

RST_VISIBLE = """\
PEP: 8
Title: Names



Heading
=======

See the site, two, `here`_, pep:8 or a.b, title and ``:pep:`8` <literal>``.

.. [1] Footnote q
.. |logo| image:: \n\
.. note:: A note n

   .. figure:: \n\
      :alt: alternative

      Caption

   Code::

       .. _code: x
       `a <b>`_

.. tip::

   - item::

       .. code


.. code-block:: python

   .. _code2: x

>>> "`a <b>`_"

Quoted::

> `a <b>`_



   A quotation"""

MARKDOWN = """\
---
title: "[a](b)"
---
# Heading [l](u)

Text ![alt *x*](img.png "t") and [a `]` b](<u v> 'k') and [x][lab], [lab][], [lab], [no][nolab] <!-- c
d --> end [![badge](s)](h), [a [b](c) d](e), \\[x](y) and `[c](d)`.

    [code](x)

```
[code](y)
<!-- z -->
```

<!-- block

comment -->

<div>
<!-- in -->
inside
</div>

[lab]: http://u
  "title"
[^1]: http://footnote

> [q]: http://q
> text [q](r(s)t)

<!-- never closed
[x](y)
"""

MARKDOWN_VISIBLE = """\
---
title: "[a](b)"
---
# Heading l

Text alt *x* and a `]` b and x, lab, [lab], [no][nolab]  end badge, [a b d](e), \\[x](y) and `[c](d)`.

    [code](x)

```
[code](y)
<!-- z -->
```



<div>

inside
</div>

[^1]: http://footnote

> text q

<!-- never closed
[x](y)"""


SRT = """1
00:00:01,000 --> 00:00:04,074
Why do <i>some</i> stars
explode?

2
0:0:5.5 --> 0:0:6.510 X1:40
{\\an8}In 1987
12 did.
3
00:00:07,000 --> 00:00:08,000
No blank line above.
"""
VTT = """WEBVTT - a film
Kind: captions

NOTE
nobody reads this

STYLE
::cue { color: red }

intro
00:01.000 --> 00:04.000 align:start
<v Fred>Hi, <00:02.000>my name is <c.yellow>Fred</c>

00:05.000 --> 00:06.000
a < b
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("source", "seen"),
    [
        (SRT, "Why do some stars explode? In 1987 12 did. No blank line above."),
        (VTT, "Hi, my name is Fred a < b"),
    ],
)
def test_subtitles_are_their_words(source: str, seen: str, line_end: str) -> None:
    source = source.replace("\n", line_end)
    visible = VisibleText.read(source, "subtitles")
    assert visible.text.split() == seen.split()
    for word in ("explode", "Fred"):
        if word in visible.text:
            assert source[visible.to_source(visible.text.index(word)) :].startswith(word)


def test_a_file_of_subtitles_stays_as_it_is_and_is_found_by_its_words(tmp_path: Path, encoder: Any) -> None:
    (tmp_path / "film.srt").write_text(SRT)
    (document,) = [
        entry.document
        for entry in read(open_sources([str(tmp_path)], ReadOptions(), holds_store)[0], ReadOptions(), lambda _: None)
    ]
    assert document is not None
    assert (document.text, document.title, document.format) == (SRT, "film", "subtitles")
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([document])
    with Searcher(tmp_path / "x.index") as searcher:
        assert searcher.search("stars", mode="words")[0].uri == document.uri
        assert not searcher.search("00", mode="words")


@pytest.mark.parametrize(
    ("format_", "source", "visible"), [("rst", RST, RST_VISIBLE), ("markdown", MARKDOWN, MARKDOWN_VISIBLE)]
)
def test_targets_roles_and_comments_are_left_out_and_nothing_else(format_: str, source: str, visible: str) -> None:
    assert visible_text(source, format_) == visible
    with_other_ends = source.replace("\n", "\r\n")
    assert visible_text(with_other_ends, format_) == visible.replace("\n", "\r\n")


SPHINX = """.. _label:

Gadgets
=======

.. note::
   :class: tip

   Call :func:`~gadgets.remove` of |product|, see :ref:`the guide <label>`.

.. versionadded:: 3.2
   A table | of | cells and ``|code|`` stay.

.. index:: single: gadget

.. |product| replace:: Gadgetron

.. code-block:: rst
   :linenos:

   .. note:: |code|
"""
MYST = """(label)=
# Widgets

```{admonition} Take care
:class: tip
Call {func}`~widgets.setup`, see {ref}`the guide <label>`.
```

:::{warning}
The {{ product }} of `{{ code }}` and {key: "value"}.
:::

```{code-block} python
{func}`code`
```

```python
(label)=
```
"""


@pytest.mark.parametrize(
    ("format_", "source", "shown"),
    [
        (
            "rst",
            SPHINX,
            "Gadgets ======= note: Call gadgets.remove of product, see the guide. versionadded: 3.2 "
            "A table | of | cells and ``|code|`` stay. .. note:: |code|",
        ),
        (
            "markdown",
            MYST,
            "# Widgets Take care Call widgets.setup, see the guide. The product of `{{ code }}` and "
            '{key: "value"}. {func}`code` ```python (label)= ```',
        ),
    ],
)
def test_a_person_does_not_see_directives_roles_and_labels(format_: str, source: str, shown: str) -> None:
    for line_end in ("\n", "\r\n"):
        assert " ".join(text_for_people(source.replace("\n", line_end), format_).split()) == shown
    assert "note::" in visible_text(SPHINX, "rst")  # what is embedded
    assert visible_text(MYST, "markdown") == MYST


@pytest.mark.parametrize("source", [RST, MARKDOWN])
@pytest.mark.parametrize("format_", [None, "text", "python", "html", "jsonl"])
def test_other_formats_are_as_they_are(format_: str | None, source: str) -> None:
    assert hidden_ranges(source, format_) == ()
    assert visible_text(source, format_) == source


@pytest.mark.parametrize(
    ("format_", "source"),
    [("rst", ".. _a: http://a\n.. _b: http://b\n"), ("rst", ".. comment"), ("markdown", "[a]: http://a\n\n***\n")],
)
def test_a_text_of_nothing_else_hides_nothing(format_: str, source: str) -> None:
    assert hidden_ranges(source, format_) == ()


_MARKS = st.lists(
    st.sampled_from([*" \n.`_:<>[]()!-#ab\\*|", "\n\n", ".. ", "::\n\n    ", "](", "]: ", "<!--", "-->", "`_", "\n> "]),
    max_size=60,
).map("".join)


@settings(deadline=None)
@given(_MARKS, st.sampled_from(["rst", "markdown"]), st.data())
def test_ranges_are_in_order_and_offsets_lead_back(source: str, format_: str, data: st.DataObject) -> None:
    visible = VisibleText.read(source, format_, for_people=data.draw(st.booleans()))
    borders = [0, *(border for each in visible.hidden for border in each), len(source)]
    assert borders == sorted(borders)
    assert len(set(borders[1:-1])) == len(borders) - 2
    assert "".join(source[visible.to_source(offset)] for offset in range(len(visible.text))) == visible.text
    for offset in range(len(visible.text)):
        assert visible.to_visible(visible.to_source(offset)) == offset
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, len(source)))
    shown = visible.text[visible.to_visible(start) : visible.to_visible(end)]
    assert visible.part(start, end).strip() == shown.strip()


def _rendered(tokens: list[Token]) -> str:
    """Return the letters that a browser shows of a text without comments."""
    shown = [_rendered(token.children) if token.children is not None else token.content for token in tokens]
    return re.sub("[^ab]", "", "".join(shown))


@settings(deadline=None, max_examples=150)
@given(_MARKS.map(lambda source: source.replace("<!-", "<")))
def test_all_that_a_browser_shows_of_markdown_is_left(source: str) -> None:
    letters = iter(visible_text(source, "markdown"))
    shown = _rendered(MarkdownIt("commonmark").parse(source))
    assert [
        letter for letter in shown if letter not in letters
    ] == []  # in this order: `in` goes on where it has found the last one


_RST_BLOCKS = (
    ("Text {kept} `{kept}\n<http://{dropped}>`_ {kept} :func:`{kept} <{dropped}>`.", 2),
    (".. _{dropped}: http://{dropped}\n   /{dropped}", 0),
    ("__ http://{dropped}", 0),
    (".. {dropped}\n   {dropped}\n\n   {dropped}", 2),
    (".. note:: {kept}\n   {kept}\n\n   .. {dropped}\n      {dropped}\n\n   {kept}", 2),
    (".. code:: {kept}\n\n   .. {kept}\n   .. _{kept}: {kept}", 2),
    (".. image:: {dropped}\n   :alt: {kept}\n   :target: {dropped}", 2),
    (".. [#] {kept} `{kept} <{dropped}>`__", 2),
    ("- {kept}::\n\n     .. {kept}\n\n     `{kept} <{kept}>`_", 2),
    ("{kept}\n  {kept}::\n\n    .. {kept}", 2),
    ("{kept}::\n\n> `{kept} <{kept}>`_", 2),
    ("{kept}\n------------", 2),
    ("::\n\n  .. {kept}", 2),
)
_MARKDOWN_BLOCKS = (
    (
        "{kept} [{kept}]({dropped} '{dropped}') ![{kept}](<{dropped} {dropped}>) <!-- {dropped} --> `[{kept}]({kept})`",
        2,
    ),
    ("[{dropped}]: http://{dropped}\n  '{dropped}'", 0),
    ("<!-- {dropped}\n\n{dropped} -->", 0),
    ("```\n[{kept}]({kept})\n<!-- {kept} -->\n\n[{kept}]: {kept}\n```", 2),
    ("- {kept}\n\n      [{kept}]({kept})\n\n  [{kept}]({dropped})", 2),
    ('> {kept}\n> [{kept}]({dropped}\n> "{dropped}")', 2),
    ("# {kept} [{kept}]({dropped})", 2),
    ("<div>\n{kept} <!-- {dropped} --> {kept}\n</div>", 2),
    ("[{kept} [{kept}]({dropped})]({kept})", 2),
)


@pytest.mark.parametrize(("format_", "blocks"), [("rst", _RST_BLOCKS), ("markdown", _MARKDOWN_BLOCKS)])
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_visible_word_is_kept_and_no_target_or_comment(
    format_: str, blocks: tuple[tuple[str, int], ...], data: st.DataObject
) -> None:
    numbers = count()
    chosen = data.draw(st.lists(st.sampled_from([block for block, _ in blocks]), min_size=1))
    chosen = ["{kept}", *chosen]
    texts = [re.sub(r"\{(\w+)\}", lambda match: f"{match[1]}{next(numbers)}", block) for block in chosen]
    source = "\n\n".join(texts) + data.draw(st.sampled_from(["", "\n"]))
    words = re.findall(r"(?:kept|dropped)\d+", source)
    visible = re.findall(r"(?:kept|dropped)\d+", visible_text(source, format_))
    assert visible == [word for word in words if word.startswith("kept")]


SIZE = 60_000
"""Characters of a text that would take minutes if its time grew with the square of its length."""


@pytest.mark.parametrize(
    ("format_", "piece"),
    [
        ("rst", "``a "),
        ("rst", "`a "),
        ("rst", "`a <b "),
        ("rst", "a::\n\n"),
        ("rst", ".. a\n\n"),
        ("rst", ":a:`b` "),
        ("rst", "- "),
        ("rst", "|a "),
        ("rst", ".. a::\n   :b: c\n"),
        ("markdown", "{a}` "),
        ("markdown", "{{ a"),
        ("markdown", ":::{a}\n:b: c\n"),
        ("markdown", "[a](b"),
        ("markdown", '[a](b "'),
        ("markdown", "["),
        ("markdown", "]"),
        ("markdown", "[](("),
        ("markdown", "<!--"),
        ("markdown", "a `[b](c) ``"),
        ("markdown", "[a][b]"),
    ],
)
def test_the_time_grows_with_the_length(format_: str, piece: str) -> None:
    text = piece * (SIZE // len(piece))
    for source in (f"a\n\n{text}", f"a\n\n{text}\n\n<!-- -->"):
        assert hidden_ranges(source, format_, for_people=True) is not None


@pytest.mark.parametrize(("format_", "blocks"), [("rst", _RST_BLOCKS), ("markdown", _MARKDOWN_BLOCKS)])
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_passages_hold_the_whole_text_and_no_visible_word_is_lost(
    encoder: Any, format_: str, blocks: tuple[tuple[str, int], ...], data: st.DataObject
) -> None:
    numbers = count()
    chosen = data.draw(st.lists(st.sampled_from([block for block, _ in blocks]), min_size=1, max_size=12))
    source = "\n\n".join(re.sub(r"\{(\w+)\}", lambda match: f"{match[1]}{next(numbers)}", block) for block in chosen)
    document = Document("a", source, "Title", format=format_)
    limits = PassageSettings(data.draw(st.sampled_from([16, 24, 60])), data.draw(st.sampled_from([0, 4])))
    (spans,) = cut([document], encoder, limits)
    covered = {offset for span in spans for offset in range(span.start, span.end)}
    assert [
        source[offset] for offset in range(len(source)) if offset not in covered and not source[offset].isspace()
    ] == []
    texts = embedded_texts(document, spans)
    assert [tokens for tokens in encoder.offsets(texts) if not (len(tokens) + 2 <= limits.max_tokens)] == []
    assert [text for text in texts if not text.removeprefix("Title").strip()] == []
    words = set(re.findall(r"(?:kept|dropped)\d+", " ".join(texts)))
    if hidden_ranges(source, format_):
        assert {word for word in words if word.startswith("dropped")} == set()
    assert set(re.findall(r"kept\d+", source)) <= words


def test_an_index_embeds_and_finds_what_is_visible(tmp_path: Path, encoder: Any) -> None:
    documents = [
        Document("rst", "Bread is `baked <http://oven>`_.\n\n.. _oven: http://oven\n\n.. yeast", "One", format="rst"),
        Document("md", "Salt is [white](http://oven).\n\n<!-- yeast -->\n", "Two", format="markdown"),
        Document("txt", "Plain [text](http://oven) <!-- yeast -->", "Three", format="text"),
        Document("only", ".. _targets: http://alone\n", "Four", format="rst"),
    ]
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(documents)
        assert sorted(encoder.seen) == [
            "Four .. _targets: http://alone",
            "One Bread is baked.",
            "Three Plain [text](http://oven) <!-- yeast -->",
            "Two Salt is white.",
        ]
        assert [index.get(document.uri) for document in documents] == documents
        with Searcher(tmp_path / "x.index", encoder) as searcher:
            for word in ("oven", "yeast"):
                assert [hit.uri for hit in searcher.search(word, mode="words")] == ["txt"]
            assert [hit.uri for hit in searcher.search("alone", mode="words")] == ["only"]
            (hit,) = searcher.search("baked", mode="words")
            assert hit.text == documents[0].text[hit.start : hit.end] == documents[0].text
            assert hit.why is not None
            assert [documents[0].text[word["start"] : word["end"]] for word in hit.why["words"]] == ["baked"]
            before = [searcher.search("bread salt plain baked", mode="words", passages=True).as_json()]
        index.compact()
        with Searcher(tmp_path / "x.index", encoder) as searcher:
            after = [searcher.search("bread salt plain baked", mode="words", passages=True).as_json()]
        assert after == before
        assert index.add(documents).unchanged == ("rst", "md", "txt", "only")


def test_the_shell_shows_what_is_visible_and_json_the_passage(tmp_path: Path, likewise: Any) -> None:
    file = tmp_path / "notes" / "bread.rst"
    file.parent.mkdir()
    text = "Bread is `baked <http://oven>`_ hot.\n\n.. yeast\n\n.. _oven: http://oven\n"
    file.write_text(text, encoding="utf-8")
    assert likewise("index", tmp_path / "x.index", file.parent).code == 0
    out = likewise("search", tmp_path / "x.index", "hot bread", "--explain").out
    assert "    Bread is baked hot.\n" in out
    assert "oven" not in out
    assert "yeast" not in out
    (hit,) = likewise("search", tmp_path / "x.index", "hot bread", "--json").json["hits"]
    assert hit["text"] == text[hit["start"] : hit["end"]] == text.strip()
