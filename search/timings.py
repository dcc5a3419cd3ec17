"""Durations of the steps of a question, and failures of stores, for callers that count them."""

from __future__ import annotations


class Timings:
    """Receives the durations from every thread that asks. Its methods must be quick and safe to call from several
    threads; these do nothing."""

    def tokenized(self, seconds: float) -> None:
        """A question, or several together, were turned into tokens to measure their length."""

    def encoded(self, questions: int, seconds: float) -> None:
        """This many questions were embedded in one pass of the model."""

    def ranked(self, seconds: float) -> None:
        """A question was ranked, and its hits were read."""

    def failed(self, slug: str) -> None:
        """An index could not be read or written. The slug is that of the error."""
