"""likewise in mteb: the whole engine as a search model, so that mteb's retrieval and reranking tasks measure it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from os import PathLike
from typing import Any

from mteb.models import ModelMeta

from indexer import BadInput, Document, Encoder, Index, Recipe, RecipeSpec
from likewise.adapters.storage import log_notes
from search import Mode, Searcher


class LikewiseSearch:
    """mteb's `SearchProtocol` over a temporary index, for `mteb.evaluate(LikewiseSearch(), tasks)`.

    Each task gets an index of its own, which replaces the index of the task before. Notes are logged as warnings.
    """

    def __init__(
        self,
        model: str | PathLike[str] | Recipe | RecipeSpec | Encoder | None = None,
        *,
        mode: Mode = "hybrid",
        **create: Any,
    ) -> None:
        """Choose how to index and to search.

        Args:
            model, create: arguments of `Index.create`, such as `max_tokens`.
            mode: `dense`, `words` or `hybrid`.
        """
        self._model, self.mode, self._create = model, mode, create
        self._index: Index | None = None

    def close(self) -> None:
        """Delete the temporary index."""
        if self._index is not None:
            self._index.close()
            self._index = None

    @cached_property
    def mteb_model_meta(self) -> ModelMeta:
        """The name under which mteb keeps the results: the model and the mode."""
        model = getattr(self._model, "recipe", self._model) or "all-MiniLM-L6-v2"
        name = f"{str(model).rpartition('/')[2]}-{self.mode}"
        return ModelMeta.create_empty({"name": f"likewise/{name}", "model_type": ["hybrid"]})

    def index(self, corpus: Iterable[Mapping[str, Any]], **options: Any) -> None:
        """Index the documents of a task: rows with `id`, `text` and perhaps `title`.

        A document without any text cannot be found and is left out, which a note says.

        Args:
            options: mteb's description of the task and of how encoders compute. Nothing of it changes the index.
        """
        self.close()
        self._index = Index.temporary(self._model, **self._create)
        rows = [(str(row["id"]), str(row.get("title") or ""), str(row.get("text") or "")) for row in corpus]
        documents = [Document(uri, text if text.strip() else title, title=title) for uri, title, text in rows]
        kept = [document for document in documents if document.text.strip()]
        if len(kept) < len(documents):
            log_notes([f"{len(documents) - len(kept)} documents have no text, and are left out"])
        log_notes(self._index.add(kept).notes)

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        top_k: int,
        top_ranked: Mapping[str, list[str]] | None = None,
        **options: Any,
    ) -> dict[str, dict[str, float]]:
        """Return the scores of the `top_k` best documents of each question: `{question id: {document id: score}}`.

        Args:
            queries: rows with `id`, `text` and perhaps `instruction`, which is put after the text as mteb does.
            top_ranked: the ids of the documents among which to search for each question, as reranking tasks give them.
            options: as in `index`.

        Raises:
            BadInput: nothing was indexed before, or a question is not a text.
        """
        if self._index is None:
            raise BadInput("no corpus was indexed: call index before search")
        texts = {str(row["id"]): _question(row) for row in queries}
        among = [None if top_ranked is None else {"uri": {"in": list(top_ranked.get(id_, ()))}} for id_ in texts]
        with Searcher(self._index.address) as searcher:
            answers = searcher.search_many(list(texts.values()), top_k, mode=self.mode, where=among)
        log_notes(dict.fromkeys(note for hits in answers for note in hits.notes))
        return {id_: {hit.uri: hit.score for hit in hits} for id_, hits in zip(texts, answers, strict=True)}


def _question(row: Mapping[str, Any]) -> str:
    text, instruction = row["text"], row.get("instruction")
    if not isinstance(text, str):
        raise BadInput(f"question {row['id']} is not a text but {type(text).__name__}: likewise reads single questions")
    return f"{text} {instruction}" if instruction else text
