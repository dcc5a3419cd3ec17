"""Short texts that show whether two ways to compute a model agree: of every length, in many languages and none."""

from __future__ import annotations

PROBES = (
    "a",
    "How do vaccines work?",
    "Größe und Maß: 12,5 % — naïve façade, 東京都, здравствуйте",
    "The bank robber was seen fishing on the river bank. " * 4,
    "def f(x): return x ** 2  # squares of numbers, not of towns\n" * 8,
)
