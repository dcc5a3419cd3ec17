"""A task of mteb without a network, and its scores over our engine. mteb takes seconds to import: test_mteb.py imports
this file when its tests run, and not whenever tests are collected."""

from __future__ import annotations

from typing import Any

import mteb
from datasets import Dataset
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import SearchProtocol

from likewise.adapters.mteb import LikewiseSearch

__all__ = ["LikewiseSearch", "SearchProtocol", "Task", "scores"]


class Task(AbsTaskRetrieval):
    metadata = TaskMetadata(
        name="LikewiseOfflineRetrieval",
        description="documents that a test brings",
        reference=None,
        dataset={"path": "none/none", "revision": "1"},
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
        date=None,
        domains=None,
        task_subtypes=None,
        license=None,
        annotations_creators=None,
        dialect=None,
        sample_creation=None,
        bibtex_citation=None,
    )

    def __init__(self, corpus: list[dict[str, str]], queries: list[dict[str, str]], qrels: Any, ranked: Any = None):
        super().__init__()
        split = {"corpus": Dataset.from_list(corpus), "queries": Dataset.from_list(queries)}
        self.dataset = {"default": {"test": {**split, "relevant_docs": qrels, "top_ranked": ranked}}}
        self.data_loaded = True

    def load_data(self, *arguments: Any, **options: Any) -> None:
        pass


def scores(task: Task, search: LikewiseSearch) -> dict[str, Any]:
    result = mteb.evaluate(search, task, cache=None, co2_tracker=False, show_progress_bar=False)
    return dict(result.task_results[0].scores["test"][0])
