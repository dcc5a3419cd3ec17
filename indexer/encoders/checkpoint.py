"""A model's folder and what its configuration files say: its parts, prompts, tokenizer and limit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from indexer.encoders.locate import find_model, fingerprint, lasting_name, read_json
from indexer.encoders.recipe import Combine, Pooling, Recipe, RecipeSpec
from indexer.encoders.torch.pooling_head import transformer_settings
from indexer.errors import ModelError


@dataclass(frozen=True)
class Checkpoint:
    """What was asked for and the folder that holds it. Raises ModelError where its files make no sense."""

    spec: RecipeSpec
    trust_remote_code: bool

    @cached_property
    def folder(self) -> Path:
        return find_model(self.spec.model)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.folder)

    @cached_property
    def transformer(self) -> Path | None:
        """The folder of its transformer, or None if it has none."""
        modules = read_json(self.folder / "modules.json", None)
        if modules is None:
            return self.folder
        is_transformer = modules[0]["type"].rpartition(".")[2] == "Transformer"
        return self.folder / modules[0]["path"] if is_transformer else None

    @cached_property
    def prompts(self) -> tuple[str, str]:
        """For queries and documents, as sentence-transformers' encode_query and encode_document choose."""
        settings = read_json(self.folder / "config_sentence_transformers.json", {})
        known = settings.get("prompts") or {}
        default = known.get(settings.get("default_prompt_name") or "", "")
        query = known.get("query", default)
        document = next((known[name] for name in ("document", "passage", "corpus") if name in known), default)
        return (
            query if self.spec.query_prompt is None else self.spec.query_prompt,
            document if self.spec.document_prompt is None else self.spec.document_prompt,
        )

    def limit(self, place: Path, positions: int) -> int:
        """Tokens read of a text: as asked, as the module or the tokenizer says, as the positions allow."""
        told = transformer_settings(place).get("max_seq_length")
        told = told or read_json(place / "tokenizer_config.json", {}).get("model_max_length") or positions
        limit = min(int(told), positions) if self.spec.max_tokens is None else self.spec.max_tokens
        if not 0 < limit <= positions:
            raise ModelError(f"model {self.spec.model!r} reads at most {positions} tokens, not {limit}")
        return limit

    def tokenizer_json(self, place: Path) -> str:
        """The tokenizer as text; converted by transformers where the model carries no tokenizer.json."""
        if (place / "tokenizer.json").is_file():
            return (place / "tokenizer.json").read_text(encoding="utf-8")
        from transformers import AutoTokenizer

        try:
            slow = AutoTokenizer.from_pretrained(place, trust_remote_code=self.trust_remote_code, local_files_only=True)
            text: str = slow.backend_tokenizer.to_str()
        except Exception as error:
            raise ModelError(
                f"{place} holds no tokenizer that likewise can use ({type(error).__name__}): fetch it again"
            ) from error
        return text

    def recipe(
        self,
        width: int,
        limit: int,
        layers: tuple[int, ...] = (),
        combine: Combine = "mean",
        pooling: Pooling | None = None,
    ) -> Recipe:
        """The recipe of vectors of `width` dimensions, cut to those asked for."""
        kept = width if self.spec.dimensions is None else self.spec.dimensions
        if not 0 < kept <= width:
            raise ModelError(f"model {self.spec.model!r} gives {width} dimensions: {kept} cannot be kept")
        name = lasting_name(self.spec.model)
        return Recipe(name, self.fingerprint, kept, limit, layers, combine, pooling, *self.prompts)
