"""Recipes side by side: how well each tells likeness and answers questions, how fast, and what its cosines mean.

Recipes that share a model share one forward pass (contenders.py). Pictures are plot.py's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from indexer.embedding import FIT_SAMPLE_PASSAGES
from indexer.encoders import RecipeSpec
from indexer.errors import BadInput
from search.evaluation.contenders import Contenders, evenly, speeds
from search.evaluation.significance import Estimate
from search.evaluation.sts import JudgedPairs
from search.evaluation.tasks import Cosines, Retrieval, judge_retrieval, judge_sts

_TIMED_SENTENCES, _TIMED_DOCUMENTS = 256, 64


@dataclass(frozen=True, slots=True)
class Row:
    """One recipe.

    Attributes:
        measures: `STS NAME` (Spearman x 100) and nDCG@10, recall@100, MRR@10, as far as there was data for them.
        speed: texts a second of this recipe alone.
        cut: texts that were longer than the model reads, and were cut there.
        cosines: of the sentences of STS, or else of questions with documents.
    """

    recipe: str
    measures: Mapping[str, Estimate]
    dimensions: int
    speed: float
    cut: int
    cosines: Cosines

    @property
    def bytes(self) -> int:
        """Of a vector as an index stores it: float16."""
        return 2 * self.dimensions


@dataclass(frozen=True, slots=True)
class Comparison:
    """Recipes in the order given; `notes` say how they were measured."""

    rows: tuple[Row, ...]
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
    """Measure recipes on judged pairs of sentences, on retrieval, or on both; p-values are against the first.

    Texts over a model's limit are cut there. center and whiten are fitted without any judgment: for STS to the
    sentences of `sts`, for retrieval to the documents.

    Raises:
        BadInput: there is nothing to measure with, two files of STS have one name, or no question is judged.
        ModelError: a recipe that cannot be loaded, or too few texts to fit its post-processing to.
    """
    if not recipes or not (sts or retrieval):
        raise BadInput("nothing to compare: give a recipe, and files of STS or a judged collection")
    if twice := [name for name, count in Counter(each.name for each in sts).items() if count > 1]:
        raise BadInput(f"two files of STS are called {twice[0]!r}: rename one")
    if retrieval and not (retrieval.qrels.judged and retrieval.documents):
        raise BadInput("no question has a relevant document, or there are no documents: nothing can be judged")
    specs = [RecipeSpec.parse(each) if isinstance(each, str) else each for each in recipes]
    contenders = Contenders.load(specs, device, trust_remote_code)
    sentences = list(dict.fromkeys(text for each in sts for side in (each.first, each.second) for text in side))
    documents = retrieval.texts if retrieval else []
    verdicts = []
    if sts:
        progress(f"{len(sentences):,} sentences")
        verdicts.append(judge_sts(contenders, sts, sentences))
    if retrieval:
        progress(f"{len(documents):,} documents")
        verdicts.append(judge_retrieval(contenders, retrieval, progress))
    timed = evenly(sentences, _TIMED_SENTENCES) if sts else evenly(documents, _TIMED_DOCUMENTS)
    progress(f"speed on {len(timed)} texts")
    speed = speeds(verdicts[0].encoders, timed)
    cut = contenders.too_long([*sentences, *documents])
    rows = tuple(
        Row(
            str(spec),
            {name: estimates[at] for verdict in verdicts for name, estimates in verdict.measures.items()},
            verdicts[0].encoders[at].dimensions,
            speed[at],
            cut[at],
            verdicts[0].cosines[at],
        )
        for at, spec in enumerate(specs)
    )
    notes = [
        "Intervals (95 %) and p against the first recipe: paired bootstrap.",
        f"Texts/s: each recipe alone, on {len(timed)} texts of {contenders.tokens(timed):.0f} tokens on average.",
        "Bytes: of a vector as an index stores it, float16.",
    ]
    if any(spec.post for spec in specs):
        fitted = [f"for STS to its {min(len(sentences), FIT_SAMPLE_PASSAGES):,} sentences"] if sts else []
        fitted += [f"for retrieval to {min(len(documents), FIT_SAMPLE_PASSAGES):,} documents"] if retrieval else []
        notes.append(f"center and whiten were fitted, without judgments, {' and '.join(fitted)}.")
    if most := max(cut):
        notes.append(f"Up to {most:,} of {len(sentences) + len(documents):,} texts were cut at what a model reads.")
    return Comparison(rows, tuple(notes))
