"""Comparing recipes: how well each judges likeness and answers questions, how fast it is, and how its cosines spread.

Recipes that share a model share one forward pass (contenders.py). plot.py draws a comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from indexer.encoders import RecipeSpec
from indexer.errors import BadInput, count_of
from likewise.evaluation.contenders import Contenders, even_sample, measure_speeds
from likewise.evaluation.significance import Estimate
from likewise.evaluation.sts import JudgedPairs
from likewise.evaluation.tasks import Cosines, Retrieval, judge_retrieval, judge_sts

_TIMED_SENTENCES, _TIMED_DOCUMENTS = 256, 64


@dataclass(frozen=True, slots=True)
class RecipeResult:
    """The measurements of one recipe.

    Attributes:
        measures: `STS NAME` (Spearman x 100) and nDCG@10, recall@100, MRR@10, where there was data for them.
        speed: texts per second of this recipe alone.
        cut: how many texts were longer than the model reads and were cut.
        cosines: cosines of sentences in STS, or else of questions with documents.
    """

    recipe: str
    measures: Mapping[str, Estimate]
    dimensions: int
    speed: float
    cut: int
    cosines: Cosines

    @property
    def bytes(self) -> int:
        """Size of a vector as an index stores it, in float16."""
        return 2 * self.dimensions


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of recipes in the order given; `notes` say how they were measured."""

    rows: tuple[RecipeResult, ...]
    notes: tuple[str, ...]


def compare(
    recipes: Sequence[str | RecipeSpec],
    sts: Sequence[JudgedPairs] = (),
    retrieval: Retrieval | None = None,
    *,
    device: str = "auto",
    trust_remote_code: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """Measure recipes on judged pairs of sentences, on retrieval, or on both; p-values are against the first recipe.

    Texts that are longer than a model reads are cut.

    Raises:
        BadInput: there is nothing to measure with, two STS files have the same name, or no question is judged.
        ModelError: a recipe cannot be loaded.
    """
    if not recipes or not (sts or retrieval):
        raise BadInput("nothing to compare: give a recipe, and files of STS or a judged collection")
    if repeated := [name for name, count in Counter(pairs.name for pairs in sts).items() if count > 1]:
        raise BadInput(f"two files of STS are called {repeated[0]!r}: rename one")
    if retrieval and not (retrieval.qrels.judged and retrieval.documents):
        raise BadInput("no question has a relevant document, or there are no documents: nothing can be judged")
    specs = [RecipeSpec.parse(recipe) if isinstance(recipe, str) else recipe for recipe in recipes]
    contenders = Contenders.load(specs, device, trust_remote_code)
    sentences = list(dict.fromkeys(text for pairs in sts for side in (pairs.first, pairs.second) for text in side))
    documents = retrieval.texts if retrieval else []
    results = []
    if sts:
        progress(f"{len(sentences):,} sentences")
        results.append(judge_sts(contenders, sts, sentences))
    if retrieval:
        progress(f"{count_of(len(documents), 'document')}")
        results.append(judge_retrieval(contenders, retrieval, progress))
    timed = even_sample(sentences, _TIMED_SENTENCES) if sts else even_sample(documents, _TIMED_DOCUMENTS)
    progress(f"speed on {count_of(len(timed), 'text')}")
    speed = measure_speeds(contenders.encoders, timed)
    cut = contenders.too_long([*sentences, *documents])
    rows = tuple(
        RecipeResult(
            str(spec),
            {name: estimates[index] for result in results for name, estimates in result.measures.items()},
            contenders.encoders[index].dimensions,
            speed[index],
            cut[index],
            results[0].cosines[index],
        )
        for index, spec in enumerate(specs)
    )
    notes = [
        "Intervals (95 %) and p against the first recipe: paired bootstrap.",
        f"Texts/s: each recipe alone, on {len(timed)} texts of {contenders.tokens(timed):.0f} tokens on average.",
        "Bytes: size of a vector as an index stores it, in float16.",
    ]
    if most := max(cut):
        notes.append(f"Up to {most:,} of {len(sentences) + len(documents):,} texts were cut at a model's token limit.")
    return Comparison(rows, tuple(notes))
