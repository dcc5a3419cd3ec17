"""One question to several indexes, with one ranking.

Each index is asked by itself, and the hits are ordered by their scores. BM25 adds up the statistics of all indexes, so
that words weigh the same in each of them. Cosines of different models cannot be compared. There, the score of a hit is
the distance of its cosine from the mean cosine of this question and all indexes with its model, in standard deviations
(fusion.py). docs/measured.md has the measurement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike, fspath

from indexer.calibration.cosines import CosineStatistics
from indexer.errors import BadInput, FilterError, NoWords
from indexer.filters.tree import Compare, Condition, Exists, In, Type, Under, Where, conditions
from indexer.filters.unknown_fields import resolve_conditions
from indexer.records import Vector
from indexer.stores.fields.field_types import FieldTypes, check_filter
from indexer.stores.port import WordStatistics
from indexer.stores.reading.snapshot import Snapshot
from likewise.federation.index_names import addresses_by_name, name_of
from search.answering import Answering
from search.asker import as_list, hits_above
from search.hits.explain import add_sentences
from search.hits.hits import Hit, Hits, family_members, in_index
from search.hits.rerank import rerank
from search.query.conditions import notes_on_reading
from search.query.newer import Newer, Weights, median_of
from search.query.query import Query, as_query, changed, understood
from search.ranking.families import FOLDED_DEPTH, MAX_FOLDED, families, note_on_stop
from search.searcher import Searcher


def search_indexes(indexes: Iterable[str | PathLike[str] | Searcher], query: Query | str) -> Hits:
    """Return the best hits of several indexes in one ranking, as `search.search_indexes` describes it."""
    searchers: dict[str, Searcher] = {}
    with ExitStack() as opened:
        for index in as_list(indexes, "indexes", "Searcher"):
            if isinstance(index, Searcher):
                name, searcher = name_of(index.address), index
            elif not isinstance(index, str | PathLike):
                raise BadInput(f"an index is given as {index!r:.80}: give its address, or a Searcher")
            else:
                ((name, address),) = addresses_by_name([fspath(index)]).items()
                searcher = opened.enter_context(Searcher(address))
            if searchers.setdefault(name, searcher) is not searcher:
                raise BadInput(f"two indexes are named {name!r}: give one another name, as in other={name}.index")
        return answer_together(searchers, as_query(query))


def answer_together(searchers: Mapping[str, Searcher], query: Query) -> Hits:
    """Return the best hits of these indexes, which are given by name. See `search_indexes`."""
    if query.examples and len(searchers) > 1:
        raise BadInput("examples are documents of one index: ask that index alone, or leave like and unlike out")
    if not searchers:
        raise BadInput("there is no index to ask: name at least one")
    with ExitStack() as stack:
        # In one order for all questions: each holds a connection of every database, and would wait for the others'.
        in_order = sorted(searchers.items(), key=lambda named: named[1].address)
        snapshots = {name: stack.enter_context(searcher.answering.snapshot()) for name, searcher in in_order}
        query = understood(query, snapshots.values())
        unfolded = changed(query, fold=False)  # families reach from one index into another
        parts = [_Part(name, searcher.answering, snapshots[name], unfolded) for name, searcher in searchers.items()]
        fields = _fields_of(parts)
        unknown_is_error = any(part.answering.unknown_fields == "error" for part in parts)
        if query.condition is not None and fields is not None:
            _resolve_filter(parts, query.condition, fields, unknown_is_error=unknown_is_error)
        if query.newer is not None:
            newer = Newer.read(query.newer)
            newer.check(fields, unknown_is_error=unknown_is_error)
            _weigh_documents(parts, newer)
        _embed(parts, query)
        if query.ranked_by != "dense":
            _share_word_statistics(parts, query.words)
        hits = _merge(parts, query)
        if query.rerank is not None:
            hits = rerank(hits, query.rerank, query.words, query.k)
        hits = hits_above(hits, query.min_score)
        return _explained(parts, hits) if query.explain else hits


@dataclass
class _Part:
    """One index of a question to several.

    Attributes:
        snapshot: its commit; in words and hybrid mode with the word statistics of all indexes.
        query: the question, not folded, with the conditions that the fields of this index can answer.
        leaves_none: whether this already decides that the filter leaves no document.
        vector: the question by the model of this index (dimensions,); None if nothing needs it.
        weights: of the documents, for newer ones first.
        notes: sentences about this index.
    """

    name: str
    answering: Answering
    snapshot: Snapshot
    query: Query
    leaves_none: bool = False
    vector: Vector | None = None
    weights: Weights | None = None
    notes: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """Key of the model: vectors with the same key may be compared. Vectors of the user's own have one key."""
        recipe = self.snapshot.settings.recipe
        return "" if recipe is None else recipe.identity


def _fields_of(parts: Sequence[_Part]) -> FieldTypes:
    """Return the types of each field in any of the indexes; None if all of them are empty."""
    every = [fields for part in parts if (fields := part.snapshot.fields) is not None]
    names = {name for fields in every for name in fields}
    return {name: {kind for fields in every for kind in fields.get(name, ())} for name in names} if every else None


def _resolve_filter(parts: Sequence[_Part], where: Where, fields: FieldTypes, *, unknown_is_error: bool) -> None:
    """Give each part the filter with the conditions that its fields cannot answer decided, as one index would.

    Args:
        fields: of all parts.

    Raises:
        FilterError: a condition fits the fields of no index.
    """
    if unknown_is_error:
        check_filter(where, fields)
    for part in parts:
        if (own := part.snapshot.fields) is None:
            continue
        resolved = resolve_conditions(where, partial(_answerable, fields=own))
        part.leaves_none = resolved is False
        part.query = changed(part.query, condition=None if isinstance(resolved, bool) else resolved)
        asked = [one for one in conditions(where) if not isinstance(one, Under)]
        lacking = {one.field for one in asked} - {one.field for one in asked if _answerable(one, own)}
        if lacking:
            part.notes += (f"has no values to compare in the field {' or '.join(sorted(lacking))} of the filter",)


def _answerable(condition: Condition, fields: Mapping[str, Collection[Type]]) -> Where | bool:
    """Return a condition with the values alone that an index with these fields may hold; False if it has none."""
    match condition:
        case In(name, values, negated):
            kept = tuple(value for value in values if _fits(Compare(name, "=", value), fields))
            if kept:
                return replace(condition, values=kept)
        case Compare(name, "!="):
            negated = True
        case _:
            name, negated = "", False
    if _fits(condition, fields):
        return condition
    return negated and _fits(Exists(name), fields) and Exists(name)


def _weigh_documents(parts: Sequence[_Part], newer: Newer) -> None:
    """Give each part the weights of its documents. Those without a date have the median of all parts."""
    for part in parts:
        if not part.leaves_none:
            part.weights = newer.weigh(part.snapshot, part.query.condition)
    undated = median_of([part.weights.weights for part in parts if part.weights is not None])
    for part in parts:
        if part.weights is not None:
            part.weights = part.weights._replace(undated_weight=undated)


def _fits(condition: Condition, fields: Mapping[str, Collection[Type]]) -> bool:
    try:
        check_filter(condition, fields)
    except FilterError:
        return False
    return True


def _embed(parts: Sequence[_Part], query: Query) -> None:
    """Give each part the vector of the question. Each model embeds it once.

    Raises:
        BadInput: an index without a model needs a vector, or the vector has another number of dimensions.
    """
    embedded: dict[str, Vector | None] = {}
    for part in parts:
        if query.row is None and part.model in embedded:
            part.vector = embedded[part.model]
            continue
        answering = part.answering
        if query.ranked_by == "words" and query.explain and query.words and part.model:
            (part.vector,), (notes,) = answering.questions.encode(part.snapshot, [query.words], answering.ahead)
        else:
            part.vector, notes = answering.vector(part.snapshot, query)
        embedded[part.model] = part.vector
        part.notes += notes


def _rank(parts: Sequence[_Part], query: Query, depth: int) -> list[Hits]:
    """Return the best hits of each part, whose scores can be compared.

    Raises:
        NoWords: in words mode, the question has no word in the language of any index.
    """
    answers, no_words = [], list[NoWords]()
    statistics = _cosine_statistics(parts) if query.ranked_by == "dense" else {}
    for part in parts:
        reading = [] if query.literal else notes_on_reading(query.asked, query.conditions)
        notes = (*part.snapshot.notes, *reading)
        nothing = Hits((), 0, True, query.text, query.ranked_by, notes=notes)
        if part.leaves_none:
            answers.append(nothing)
            continue
        try:
            asked = copy(part.answering)
            asked.unknown_fields = "empty"  # what one index lacks may be in another
            plan = asked.plan(part.snapshot, part.query, part.vector, part.weights)
            if part.model in statistics:
                plan = plan._replace(statistics=statistics[part.model])
            hits = asked.hits(part.snapshot, plan, depth)
            answers.append(replace(hits, hits=tuple(in_index(hit, part.name) for hit in hits)))
        except NoWords as error:
            no_words.append(error)
            answers.append(replace(nothing, notes=(*nothing.notes, str(error))))
    if len(no_words) == len(parts):
        raise no_words[0]
    return answers


def _share_word_statistics(parts: Sequence[_Part], text: str) -> None:
    """Let BM25 weigh each term by the texts of all indexes of the same language."""
    total: dict[str, WordStatistics] = {}
    for part in parts:
        language = part.snapshot.settings.language
        total[language] = total.get(language, WordStatistics()) + part.snapshot.word_statistics(text)
    for part in parts:
        part.snapshot = part.snapshot.weighed_by(total[part.snapshot.settings.language])


def _cosine_statistics(parts: Sequence[_Part]) -> dict[str, CosineStatistics]:
    """Return the statistics of all indexes with the same model, for each model; none for a single model, whose cosines
    can be compared."""
    models: dict[str, list[_Part]] = {}
    for part in parts:
        if part.snapshot.passages:
            models.setdefault(part.model, []).append(part)
    if len(models) < 2:
        return {}
    return {
        model: CosineStatistics.pooled(
            [(part.answering.kept.statistics(part.snapshot), part.snapshot.passages) for part in same]
        )
        for model, same in models.items()
    }


def _merge(parts: Sequence[_Part], query: Query) -> Hits:
    """Return the best hits of all parts; equal scores in the order of the indexes."""
    depth = query.depth * FOLDED_DEPTH if query.fold else query.depth
    most, described = max(depth, MAX_FOLDED), list[str]()
    while True:
        answers = _rank(parts, query, depth)
        matched = sum(hits.matched for hits in answers)
        best = sorted((hit for hits in answers for hit in hits), key=lambda hit: -hit.score)[:depth]
        if not query.fold:
            break
        check = parts[0].answering.deadline.check
        founded, compared = families([(hit.text, hit.format) for hit in best], query.depth, check)
        is_done = compared == len(best) and (len(founded) == query.depth or compared >= matched)
        if is_done or compared < len(best) or depth == most:
            best = [_with_family(*(best[row] for row in rows)) for rows in founded]
            described += [] if is_done else [note_on_stop(compared)]
            break
        depth = min(4 * depth, most)
    notes = Counter[str]()
    notes_of = []
    for part, hits in zip(parts, answers, strict=True):
        of_values = tuple[str, ...]()
        if not matched and part.query.condition is not None:
            of_values = part.answering.notes_on(part.snapshot, part.query.condition, found=False)
        notes_of.append(list(dict.fromkeys((*part.notes, *hits.notes, *of_values))))
        notes.update(notes_of[-1])
    described += [
        note if notes[note] == len(parts) else f"{part.name}: {note}"
        for part, own in zip(parts, notes_of, strict=True)
        for note in own
    ]
    corrections = [hits.did_you_mean for part, hits in zip(parts, answers, strict=True) if part.snapshot.documents]
    answered = [hits.answered for hits in answers if hits.answered is not None]
    return Hits(
        tuple(best),
        matched,
        all(hits.exact for hits in answers),
        query.text,
        query.ranked_by,
        any(answered) if answered else None,
        tuple(dict.fromkeys(described)),
        corrections[0] if corrections and all(corrections) else "",
    )


def _with_family(hit: Hit, *others: Hit) -> Hit:
    """Return a hit with the other hits of its family."""
    members = family_members((hit.uri, hit.index), [(other.uri, other.index) for other in others])
    return replace(hit, **members) if others else hit


def _explained(parts: Sequence[_Part], hits: Hits) -> Hits:
    """Return the hits with their nearest sentences, each by the model of its index."""
    explained: dict[int, Hit] = {}
    for part in parts:
        if part.vector is None or not part.model:
            continue
        encoder, _ = part.answering.questions.encoder_of(part.snapshot)
        own = [(rank, hit) for rank, hit in enumerate(hits) if hit.index == part.name]
        with_sentences = add_sentences([hit for _, hit in own], encoder, part.vector)
        explained |= dict(zip((rank for rank, _ in own), with_sentences, strict=True))
    return replace(hits, hits=tuple(explained.get(rank, hit) for rank, hit in enumerate(hits)))
