"""The door of the part `speed`: what it gives the engine, and the compilation of an index's encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from indexer.errors import ModelError
from indexer.indexing.compiler import Compiler
from likewise.speed.quick_encoders import QuickEncoders

if TYPE_CHECKING:
    from indexer.indexing.core import IndexCore
    from indexer.stores.reading.store import Writer


class SpeedDoor(QuickEncoders, Compiler):
    """The part as the engine and other parts see it."""

    def compile_index(self, index: IndexCore) -> None:
        if reason := _nothing_to_compile(index):
            raise ModelError(f"{index.address}: there is nothing to compile: {reason}")
        from indexer.encoders.recipes.port import loaded, of_role
        from indexer.encoders.registry import get_encoder
        from likewise.speed.compilation.export import compile_encoder

        encoder, runtime = of_role(index.encoder, "query"), index.context.runtime
        if runtime.precision == "int8":  # only documents are embedded so
            encoder = get_encoder(encoder.recipe, replace(runtime, precision="auto"))
        with index.writer():
            compile_encoder(loaded(encoder), index.store.artifacts())

    def compile_new(self, index: IndexCore, writer: Writer) -> list[str]:
        if reason := _nothing_to_compile(index):
            if not self.is_settled(index):
                _record(writer, reason)
            return []
        index.context.listener.step("compiling the encoder, so that questions are quick")
        if self.is_settled(index):
            return []
        artifacts, cache = index.store.artifacts(), index.context.cache
        assert index.recipe is not None
        if cache is not None and cache.take_compiled(index.recipe.for_questions, artifacts):
            return []
        try:
            self.compile_index(index)
            if cache is not None:
                cache.keep_compiled(index.recipe.for_questions, artifacts)
        except ModelError as error:
            reason = f"{error}: a question will take some seconds"
            _record(writer, reason)
            return [reason]
        return []

    def is_settled(self, index: IndexCore) -> bool:
        return index.store.artifacts().exists() or bool(index.stored_settings().uncompiled)


SPEED = SpeedDoor()


def _nothing_to_compile(index: IndexCore) -> str:
    """Return why the encoder of questions needs no graph; nothing if it needs one."""
    from indexer.encoders.recipes.recipe import scheme_of

    return f"its model is behind {index.recipe.model}" if index.recipe and scheme_of(index.recipe.model) else ""


def _record(writer: Writer, reason: str) -> None:
    """Record why an index has no compiled encoder."""
    writer.change(lambda settings: replace(settings, uncompiled=reason))
