"""Texts for comparing two ways to compute a model: short and long, in several languages, and code."""

from __future__ import annotations

PROBES = (
    "a",
    "How do vaccines work?",
    "Größe und Maß: 12,5 % — naïve façade, 東京都, здравствуйте",
    "The bank robber was seen fishing on the river bank. " * 4,
    "def f(x): return x ** 2  # squares of numbers, not of towns\n" * 8,
)
