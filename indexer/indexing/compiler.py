"""The interface of the part `speed` for an index: its encoder is compiled, so that questions need no torch.

doors.py finds the part. Without it no index is compiled, and torch answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from indexer.indexing.core import IndexCore
    from indexer.stores.reading.store import Writer


class Compiler(Protocol):
    """Compiles the encoders of indexes."""

    def compile_index(self, index: IndexCore) -> None:
        """Write the encoder of an index as a graph; errors are those of `Index.compile`."""

    def compile_new(self, index: IndexCore, writer: Writer) -> list[str]:
        """Compile the encoder after documents were embedded, unless this was tried before.

        Returns:
            A note if it fails. The reason is then recorded in the index.
        """

    def is_settled(self, index: IndexCore) -> bool:
        """Return whether the encoder was compiled, or could not be."""
