"""The options of a new index, listed once. `Index.create` describes them, and embedding.py makes settings of them.

The command line inherits them, so this file imports nothing until an option is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from os import PathLike

    from indexer.encoders.machine.hardware import Precision
    from indexer.encoders.machine.runtime import Runtime
    from indexer.settings import Settings

AUTO_MODEL = "auto"
"""Name of the model that is chosen by the first texts of a new index."""


class NewIndexOptions(TypedDict, total=False):
    """The fields of `NewIndex` for type checkers, as `Index.open` and `Index.temporary` take them."""

    dimensions: int | Literal["auto"] | None
    max_tokens: int | None
    overlap: int | None
    language: str
    precision: Precision
    device: str
    trust_remote_code: bool
    tokenizer: str | PathLike[str] | None


@dataclass(frozen=True, slots=True)
class NewIndex:
    """The options of a new index besides its model, as `Index.create` describes them. None leaves an option open."""

    dimensions: int | Literal["auto"] | None = None
    max_tokens: int | None = None
    overlap: int | None = None
    language: str | None = None
    precision: Precision = "auto"
    device: str = "auto"
    trust_remote_code: bool = False
    tokenizer: str | PathLike[str] | None = None

    @property
    def runtime(self) -> Runtime:
        from indexer.encoders.machine.runtime import Runtime

        return Runtime(self.precision, self.device, self.trust_remote_code)

    @property
    def language_code(self) -> str | None:
        """The code of the language; None if the texts decide it. Raises BadInput for an unknown language."""
        from indexer.stores.words.analysis import code, is_auto

        return None if self.language is None or is_auto(self.language) else code(self.language)

    def compared(self, settings: Settings, dimensions: object) -> tuple[tuple[str, object, object], ...]:
        """Return what an existing index must have been made with: the name of each option, its value here and there.

        Args:
            settings: the settings of the index. If no text has decided its language yet, any language fits.
            dimensions: the width to compare with.
        """
        cut, language = settings.passages, self.language_code
        return (
            ("dimensions", self.dimensions, dimensions),
            ("max_tokens", self.max_tokens, cut and cut.max_tokens),
            ("overlap", self.overlap, cut and cut.overlap),
            ("language", language, language if settings.language_open else settings.language),
        )
