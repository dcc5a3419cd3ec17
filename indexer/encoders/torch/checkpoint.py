"""A model's folder, read through its configuration files: parts, prompts, tokenizer and token limit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from indexer.encoders.machine.hardware import Precision
from indexer.encoders.recipes.locate import (
    find_model,
    fingerprint,
    lasting_name,
    modules_of,
    read_json,
    sentence_settings,
)
from indexer.encoders.recipes.prompts import known_prompts
from indexer.encoders.recipes.recipe import Combine, Pooling, Recipe, RecipeSpec
from indexer.encoders.torch.pooling_head import transformer_settings
from indexer.errors import ModelError

TOKENS_WITHOUT_LIMIT = 512
"""Maximum tokens for a model without a limit. Longer passages give worse answers, and model2vec truncates here too."""


@dataclass(frozen=True)
class Checkpoint:
    """A requested model and the folder that holds it. Every member raises ModelError for files that make no sense.

    Attributes:
        spec: the request.
        trust_remote_code: whether Python code that comes with the model may run.
    """

    spec: RecipeSpec
    trust_remote_code: bool

    @cached_property
    def folder(self) -> Path:
        """The folder with the model's files; a hub model is fetched if it is not in the local cache."""
        return find_model(self.spec.model, fingerprint=self.spec.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over weights, tokenizer and configuration."""
        return fingerprint(self.folder)

    @cached_property
    def modules(self) -> list[dict[str, str]] | None:
        """Type and path of each module that texts go through; None for a folder without modules.json."""
        return modules_of(self.folder, self.spec.route)

    @cached_property
    def transformer(self) -> Path | None:
        """The folder of the transformer module, or None for a model without one."""
        modules = self.modules
        if modules is None:
            return None if self.static else self.folder
        library, _, kind = modules[0]["type"].rpartition(".")
        if kind != "Transformer":
            return None
        if not (library.startswith("sentence_transformers") or self.spec.pooling is not None):
            raise ModelError(
                f"model {self.spec.model!r} brings Python code of its own ({modules[0]['type']}), which may do more "
                "than run its transformer: name a pooling to use the transformer alone, or take another model"
            )
        return self.folder / str(modules[0]["path"])

    @cached_property
    def static(self) -> Path | None:
        """The folder of the table of a static model, or None for any other model."""
        modules = self.modules
        if modules is None:
            is_static = read_json(self.folder / "config.json", {}).get("model_type") == "model2vec"
            return self.folder if is_static else None
        kinds = [module["type"].rpartition(".")[2] for module in modules]
        is_static = kinds in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"])
        return self.folder / modules[0]["path"] if is_static else None

    @cached_property
    def prompts(self) -> tuple[str, str]:
        """Prompts for queries and documents, chosen as sentence-transformers' encode_query and encode_document do.

        A known model whose folder has no prompts gets the prompts that it was trained with.
        """
        settings = sentence_settings(self.folder)
        prompts = settings.get("prompts") or {}
        default = prompts.get(settings.get("default_prompt_name") or "", "")
        query = prompts.get("query", default)
        document = next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), default)
        if not any(prompts.values()):
            query, document = known_prompts(self.spec.model, self.folder) or ("", "")
        return (
            query if self.spec.query_prompt is None else self.spec.query_prompt,
            document if self.spec.document_prompt is None else self.spec.document_prompt,
        )

    def limit(self, place: Path, positions: int) -> int:
        """Return how many tokens the model reads of one text, special tokens and prompt counted.

        The number is the requested limit, or else the limit in the Transformer module's settings, or else the
        tokenizer's limit.

        Args:
            place: the transformer's folder.
            positions: number of positions of the transformer, which is the maximum that it can read.

        Raises:
            ModelError: the requested number does not fit the transformer.
        """
        configured = transformer_settings(place).get("max_seq_length")
        configured = configured or read_json(place / "tokenizer_config.json", {}).get("model_max_length") or positions
        limit = min(int(configured), positions) if self.spec.max_tokens is None else self.spec.max_tokens
        if not 0 < limit <= positions:
            raise ModelError(f"model {self.spec.model!r} reads at most {positions} tokens, not {limit}")
        return limit

    def limit_up_to(self, longest: float | None) -> int:
        """Return how many tokens a model without positions reads of one text.

        Args:
            longest: the limit in the model's settings; None, or 2**20 and more, is no limit.

        Raises:
            ModelError: the requested number is not within it.
        """
        bounded = longest and longest < 2**20
        limit = self.spec.max_tokens
        if limit is None:
            limit = int(longest) if longest and bounded else TOKENS_WITHOUT_LIMIT
        if limit < 1 or (longest and bounded and limit > longest):
            most = f"at most {longest}" if bounded else "1 or more"
            raise ModelError(f"model {self.spec.model!r} reads {most} tokens, not {limit}")
        return limit

    def tokenizer_json(self, place: Path) -> str:
        """Return the text of tokenizer.json; transformers converts the tokenizer of a model without that file.

        Raises:
            ModelError: there is no tokenizer that can be converted.
        """
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

    def require_float32(self, precision: Precision) -> None:
        """Raise ModelError if a precision is requested of a model whose modules run only in float32."""
        if precision not in ("auto", "float32"):
            raise ModelError(
                f"model {self.spec.model!r} has modules that run only in float32, not in {precision}: "
                "leave precision out"
            )

    def recipe(
        self,
        width: int,
        limit: int,
        layers: tuple[int, ...] = (),
        combine: Combine = "mean",
        pooling: Pooling | None = None,
    ) -> Recipe:
        """Return the recipe of this model's vectors.

        Args:
            width: dimensions of the model's vectors; the request may keep fewer.
            limit: maximum tokens of one text, as `limit` returns them.
            layers, combine, pooling: as in `Recipe`; left out for the model's own modules.

        Raises:
            ModelError: more dimensions are requested than the model gives.
        """
        kept = self.spec.dimensions
        if kept is None:
            kept = min(width, sentence_settings(self.folder).get("truncate_dim") or width)
        if not 0 < kept <= width:
            raise ModelError(f"model {self.spec.model!r} gives {width} dimensions: {kept} cannot be kept")
        name = lasting_name(self.spec.model, self.spec.fingerprint)
        parts = (kept, limit, layers, combine, pooling, *self.prompts)
        return Recipe(name, self.fingerprint, *parts, route=self.spec.route)
