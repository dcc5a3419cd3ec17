"""Passages: every token of a text lies in one, none is over the limit, and what is embedded is what was promised."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from indexer import Document, Index, Section, load_encoder
from indexer.encoders import Encoder
from indexer.errors import BadInput
from indexer.passages.cut import PassageSettings, cut, embedded_texts
from indexer.passages.unbroken import unbroken_ranges


@pytest.fixture(scope="module")
def model() -> Encoder:
    return load_encoder("all-MiniLM-L6-v2")


def assert_whole(document: Document, model: Encoder, limits: PassageSettings) -> None:
    """Spans ascend, cover every token, and what is embedded of each is within the limit by the model's own count."""
    (spans,) = cut([document], model, limits)
    (tokens,) = model.offsets([document.text])
    covered = np.zeros(len(document.text) + 1, np.bool_)
    for span in spans:
        assert 0 <= span.start < span.end <= len(document.text)
        covered[span.start : span.end] = True
    for start, end in tokens.tolist():
        assert any(span.start <= start and end <= span.end for span in spans), document.text[start:end]
        assert covered[start:end].all()
    assert bool(spans) == bool(len(tokens))
    assert [span.start for span in spans] == sorted(span.start for span in spans)
    for before, after in pairwise(spans):
        assert (before.start, before.end) < (after.start, after.end)
    texts = embedded_texts(document, spans)
    for text, own in zip(texts, model.offsets(texts), strict=True):
        # Joined to its prefix a text may count a few more tokens than its parts; `Index` then cuts again, shorter.
        assert len(own) + model.overhead() <= limits.max_tokens + 4, text


_ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=600)
_PROSE = st.lists(st.sampled_from(["word", "Satz.", "новый", "数据库。", "\n", "\n\n", "x" * 40, "é́", "🙂", "  "])).map(
    " ".join
)
_ENDLESS = st.sampled_from(["x", "数", "a1", "=-", "́", "अ", "\u200d🙂", "\n", " \t", "ﷺ"]).flatmap(
    lambda piece: st.integers(1, 1500).map(lambda times: piece * times)
)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=st.one_of(_ANY, _PROSE, _ENDLESS, st.tuples(_PROSE, _ENDLESS, _ANY).map("".join)),
    title=st.one_of(st.just(""), st.text(st.characters(exclude_categories=["Cs"]), max_size=80)),
    limit=st.sampled_from([(16, 0), (24, 12), (64, 16), (256, 32)]),
    headings=st.lists(st.tuples(st.integers(0, 600), st.text("ab >", max_size=9), st.sampled_from([None, 1, 2]))),
)
def test_every_token_is_covered_and_none_is_over_the_limit(
    model: Encoder, text: str, title: str, limit: tuple[int, int], headings: list[tuple[int, str, int | None]]
) -> None:
    assume(not unbroken_ranges(text))  # long stretches without a space are left out on purpose: test_left_out
    starts = sorted({start: (start, heading, page) for start, heading, page in headings if start < len(text)}.values())
    document = Document("a", text, title, sections=tuple(Section(*each) for each in starts))
    assert_whole(document, model, PassageSettings(*limit))


@pytest.mark.parametrize(
    "text",
    [
        "x" * 2000,
        "0123456789" * 200,
        "数据" * 900,
        "word\n" * 900,
        "\n" * 3000 + "end",
        "a " * 2000,
        "é" * 800,
        "=" * 999,
    ],
    ids=["letters", "digits", "han", "lines", "newlines", "words", "combining", "signs"],
)
def test_awkward_texts_are_indexed_whole_by_the_real_model(tmp_path: Path, model: Encoder, text: str) -> None:
    assert_whole(Document("a", text, "A title"), model, PassageSettings(256, 32))
    with Index.create(tmp_path / "x.index", model, max_tokens=32, overlap=8) as index:
        document = Document("a", text[:400] if text.strip("\n") == text else text, "A title of five words")
        assert index.add([document]).added == ("a",)
        assert index.get("a") == document


def test_sections_begin_passages_of_their_own_and_stand_before_them(encoder: Any) -> None:
    words = " ".join(f"w{i}" for i in range(60))
    text = f"{words}\n{words}"
    document = Document("a", text, "Title", sections=(Section(0, "One"), Section(len(words) + 1, "One > Two", 4)))
    (spans,) = cut([document], encoder, PassageSettings(40, 4))
    assert {span.heading for span in spans} == {"One", "One > Two"}
    assert next(span.start for span in spans if span.heading == "One > Two") == len(words) + 1
    assert {span.prefix for span in spans} == {"One", "One > Two"}
    assert [span.page for span in spans if span.heading == "One > Two"] == [4] * sum(s.page == 4 for s in spans)
    assert embedded_texts(document, spans)[-1] == f"One > Two {text[spans[-1].start : spans[-1].end]}"


def test_what_is_embedded_is_title_space_passage(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", "one two three", "The title"), Document("b", "four", "")])
    assert sorted(encoder.seen) == ["The title one two three", "four"]


def test_a_title_longer_than_the_model_reads_leaves_room_for_the_text(tmp_path: Path, encoder: Any) -> None:
    title = " ".join(f"t{i}" for i in range(300))
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", " ".join(f"w{i}" for i in range(50)), title)])
        assert index.get("a").title == title
    assert [text for text in encoder.seen if not (text.startswith("t0 t1 ") and 10 < len(text.split()) <= 30)] == []
    assert {word for text in encoder.seen for word in text.split() if word[0] == "w"} == {f"w{i}" for i in range(50)}


@pytest.mark.parametrize("overlap", [0, 5, 10])
def test_neighbours_share_the_overlap_and_no_more(encoder: Any, overlap: int) -> None:
    endless = " ".join(f"w{i}" for i in range(300))
    sentences = " ".join(f"w{i}." if i % 9 == 8 else f"w{i}" for i in range(300))
    for text in (endless, sentences):
        (spans,) = cut([Document("a", text)], encoder, PassageSettings(32, overlap))
        pairs = pairwise(spans)
        shared = [len(text[after.start : before.end].split()) for before, after in pairs]
        assert max(shared) <= overlap
        assert text is sentences or min(shared) == overlap  # a sentence that ends between them needs none


def test_paragraphs_and_sentences_are_not_torn_where_they_fit(encoder: Any) -> None:
    paragraphs = [" ".join([f"p{i}"] * 20) + "." for i in range(6)]
    (spans,) = cut([Document("a", text := "\n\n".join(paragraphs))], encoder, PassageSettings(32, 0))
    assert [text[span.start : span.end] for span in spans] == paragraphs


@pytest.mark.parametrize(("max_tokens", "overlap"), [(15, 0), (0, 0), (-1, 0), (64, 33), (64, -1)])
def test_settings_that_make_no_sense_are_refused(max_tokens: int, overlap: int) -> None:
    with pytest.raises(BadInput, match=r"max tokens|overlap"):
        PassageSettings(max_tokens, overlap)


def test_short_passages_have_a_short_overlap_unless_asked(tmp_path: Path, encoder: Any) -> None:
    for limit, overlap in ((16, 4), (32, 8)):
        with Index.create(tmp_path / f"{limit}.index", encoder, max_tokens=limit) as index:
            assert index.passage_settings == PassageSettings(limit, overlap)
    with pytest.raises(BadInput, match="over what words reads: 32"):
        Index.create(tmp_path / "x.index", encoder, max_tokens=33)
    with pytest.raises(BadInput, match="max tokens 0"):
        Index.create(tmp_path / "x.index", encoder, max_tokens=0)


@pytest.mark.parametrize("title", [29, 30, 31, 40])
def test_beside_a_long_title_the_overlap_gives_way(model: Encoder, title: int) -> None:
    document = Document("a", "word " * 200, "title " * title)
    assert_whole(document, model, PassageSettings(64, 32))


def test_a_heading_is_that_of_where_the_passage_begins(encoder: Any) -> None:
    parts = [("Top", "# Top\n\n"), ("Top > One", "bananas are bent\n\n"), ("Top > Two", f"{'long ' * 60}\n\n")]
    text, sections = "", []
    for heading, part in parts:
        sections.append(Section(len(text), heading))
        text += part
    (spans,) = cut([Document("d", text, sections=tuple(sections))], encoder, PassageSettings(32, 0))
    assert (spans[0].start, spans[0].heading) == (0, "Top > One")
    (lone,) = cut(
        [Document("d", text[7:], sections=(Section(0, "A"), Section(18, "B")))], encoder, PassageSettings(32, 0)
    )
    assert {span.heading for span in lone} == {"A"}
