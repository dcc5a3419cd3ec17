"""Does the service answer as another version of it does?

    python -m benchmarks.same_answers OTHER_CHECKOUT [QUESTIONS]      default: 300 questions

OTHER_CHECKOUT is a second working tree, such as `git worktree add ../before REVISION` makes one. Both serve the index
of benchmarks.serve. SciFact's questions are asked in three modes with `explain`. First one at a time: the parsed JSON
must be equal, floats exactly. Then 32 at a time: the hits must be the same, with scores that differ by at most 1e-5;
hits whose scores are that near may change places. Exits with 1 if an answer differs.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.machine import machine
from benchmarks.serve import MODES, questions, scifact, serving

TOLERANCE = 1e-5
AT_ONCE = 32


def answer(port: int, mode: str, question: str) -> Any:
    """Return the parsed answer of a service to a question. It is asked again while the service has too much to do."""
    body = json.dumps({"query": question, "mode": mode, "explain": True}).encode()
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/indexes/bench/search", body) as answered:
                return json.load(answered)
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            time.sleep(float(error.headers["Retry-After"]))


def is_near(one: Any, other: Any) -> bool:
    """Return whether two answers have the same hits with nearly the same scores."""
    scores, others = ({hit["uri"]: hit["score"] for hit in answered["hits"]} for answered in (one, other))
    last = min((*scores.values(), *others.values()), default=0.0) + TOLERANCE
    # A hit at the border may have been replaced by another with the same score.
    if any(scores.get(uri, others.get(uri)) > last for uri in scores.keys() ^ others.keys()):
        return False
    if any(abs(scores[uri] - others[uri]) > TOLERANCE for uri in scores.keys() & others.keys()):
        return False
    return all(abs(a["score"] - b["score"]) <= TOLERANCE for a, b in zip(one["hits"], other["hits"], strict=True))


def main() -> None:
    other = Path(sys.argv[1]).resolve()
    asked = questions()[: int(sys.argv[2]) if len(sys.argv) > 2 else 300]
    pairs = list(product(MODES, asked))
    with serving(scifact()) as now, serving(scifact(), tree=other) as before:
        alone = [[answer(service.port, *pair) for pair in pairs] for service in (now, before)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            together = [
                list(pool.map(lambda pair, port=service.port: answer(port, *pair), pairs)) for service in (now, before)
            ]
    print(f"{machine()}; {len(asked)} questions, explained\n")
    print("| mode | equal, one at a time | near, 32 at a time |\n| --- | --- | --- |")
    equal = [one == two for one, two in zip(*alone, strict=True)]
    near = [is_near(one, two) for one, two in zip(*together, strict=True)]
    for place, mode in enumerate(MODES):
        part = slice(place * len(asked), (place + 1) * len(asked))
        print(f"| {mode} | {sum(equal[part])} of {len(asked)} | {sum(near[part])} of {len(asked)} |")
    sys.exit(0 if all(equal) and all(near) else 1)


if __name__ == "__main__":
    main()
