"""likewise tune: learn the weight of words in hybrid search from judged questions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from indexer.errors import count_of
from likewise.shell.arguments import options
from likewise.shell.terminal.output import say, say_json, warn_of


@click.command(cls=options.IndexCommand)
@options.queries_option
@options.qrels_option
@click.option("--reset", is_flag=True, help="Forget what was learned before and start from the default.")
@options.trust_option
@options.no_wait_option
@options.json_option
def tune(
    path: str, queries: Path, qrels: Path, reset: bool, trust_remote_code: bool, no_wait: bool, as_json: bool
) -> None:
    """Learn from judged questions how much words should weigh in hybrid search of INDEX.

    The result is kept only if it improves the answers to questions that it was not learned from (five folds).

    \b
    likewise tune papers.index --queries queries.jsonl --qrels qrels/train.tsv
    """
    from indexer.stores.addresses.open import open_store
    from likewise.evaluation.commands.evaluate import as_stored
    from likewise.evaluation.measures import read_qrels, read_queries
    from likewise.evaluation.tune import scored_candidates
    from likewise.evaluation.tune import tune as learn_words_bias
    from likewise.shell.terminal.progress import Console
    from search.answering import Answering
    from search.ranking.fusion import words_bias
    from search.searcher import Searcher

    texts = read_queries(queries)
    with (
        closing(open_store(path)) as store,
        Searcher(path) as searcher,
        store.writer(wait=not no_wait, listener=Console()) as writer,
    ):
        judged, _ = as_stored(searcher, read_qrels(qrels, texts), path)
        answering = Answering(store, trust_remote_code=trust_remote_code)
        candidates, uris, notes = scored_candidates(answering, [texts[query] for query in judged.judged])
        questions = list(zip(judged.judged, candidates, uris, strict=True))
        with store.snapshot() as snapshot:
            before = words_bias(replace(snapshot.settings, words_bias=None) if reset else snapshot.settings)
        tuned = learn_words_bias(questions, judged, before)
        if tuned.gains:
            writer.change(lambda settings: replace(settings, words_bias=tuned.words_bias))
        elif reset:
            writer.change(lambda settings: replace(settings, words_bias=None))
    warn_of(notes)
    if as_json:
        say_json(
            {
                "lean": tuned.words_bias if tuned.gains else tuned.before,
                "before": tuned.before,
                "ndcg_before": tuned.score_before,
                "ndcg_held_out": tuned.score_held_out,
                "questions": tuned.questions,
                "kept": tuned.gains,
                "notes": notes,
            }
        )
        return
    counted = count_of(tuned.questions, "question")
    say(f"{counted}, before: nDCG@10 {tuned.score_before:.4f} (words bias {tuned.before:+.2f})")
    say(f"held-out questions: nDCG@10 {tuned.score_held_out:.4f} (words bias learned from all {tuned.words_bias:+.2f})")
    unchanged = "what was learned before is forgotten" if reset else "nothing was changed"
    say("the new words bias is kept" if tuned.gains else f"no gain: {unchanged}")
