"""The chunking measure on spans worked out by hand."""

from __future__ import annotations

import pytest

from benchmarks.chunking import Excerpt, score


def test_one_span_half_found() -> None:
    # Wanted 10..30 (20 characters). Retrieved 0..20 and, elsewhere, 20 more: found 10 of 20, fetched 40.
    # Recall 10/20, precision 10/40, IoU 10/(40 + 10 missed).
    recall, precision, iou = score([[Excerpt("a", 0, 20), Excerpt("b", 10, 30)]], [[Excerpt("a", 10, 30)]])
    assert (recall, precision, iou) == ((0.5, 0.0), (0.25, 0.0), (0.2, 0.0))


def test_overlap_counts_once_above_and_twice_below() -> None:
    # 0..10 and 5..15 fetch 20 characters and cover 15; wanted 0..12: found 12.
    # Recall 1, precision 12/20, IoU 12/20.
    recall, precision, iou = score([[Excerpt("a", 5, 15), Excerpt("a", 0, 10)]], [[Excerpt("a", 0, 12)]])
    assert (recall.mean, precision.mean, iou.mean) == (1.0, 0.6, 0.6)


def test_several_spans_and_one_passage_within_another() -> None:
    # Spans 0..10 and 90..100; passages 0..100 and 20..30: found 20, fetched 110.
    recall, precision, iou = score(
        [[Excerpt("a", 0, 100), Excerpt("a", 20, 30)]], [[Excerpt("a", 0, 10), Excerpt("a", 90, 100)]]
    )
    assert (recall.mean, precision.mean, iou.mean) == pytest.approx((1.0, 20 / 110, 20 / 110))


def test_mean_and_deviation_over_questions() -> None:
    # One question answered whole (1, 1, 1), one without any result (0, 0, 0): mean 1/2, deviation 1/2.
    values = score([[Excerpt("a", 0, 5)], []], [[Excerpt("a", 0, 5)], [Excerpt("a", 7, 9)]])
    assert values == ((0.5, 0.5),) * 3
