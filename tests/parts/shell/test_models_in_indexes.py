"""The compiled encoder for questions that an index stores, and the place of its model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import likewise.shell
from indexer import Document, Index
from search import Searcher

WORDS = "bank river vault robber flute dogs snow porch vaccines stars explode slowly".split()  # noqa: SIM905


def documents(count: int) -> list[Document]:
    random = np.random.default_rng(5)
    return [Document(f"d{number}", " ".join(random.choice(WORDS, 9))) for number in range(count)]


@pytest.fixture(autouse=True)
def forget(register: Callable[..., None]) -> Callable[[], None]:
    """Forgets every encoder that was loaded; that holds for the whole test and can be done again."""
    register(alone=True)
    return lambda: register(alone=True)


def test_a_model_in_a_folder_is_found_from_elsewhere_and_after_it_moved(
    tiny: Callable[[str], Path], tmp_path: Path, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny("bert"), tmp_path / "here" / "model")
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with Index.create(tmp_path / "x.index", "./model:mean") as index:
        index.add(documents(5))
    monkeypatch.chdir(tmp_path / "there")
    forget()
    with Index.open(tmp_path / "x.index") as index:
        index.add(documents(7))
    (tmp_path / "here" / "model").rename(tmp_path / "there" / "moved")
    forget()
    with Index.open(tmp_path / "x.index", "./moved:mean") as index:
        index.add(documents(9))
        assert len(index) == 9
        held = index.recipe
        moved = index._core.with_model("./moved:mean", found_at=str(tmp_path / "there" / "moved"))
        assert held is not None
        assert moved.recipe is not None
        assert held.same(moved.recipe)
    forget()
    with Searcher(tmp_path / "x.index") as searcher:
        assert len(searcher.search("dogs snow", 9)) == 9


def asked(folder: Path) -> tuple[dict[str, float], list[str], str]:
    """Scores by uri, which of these packages and modules were loaded, and what was warned."""
    program = (
        "import sys, json, likewise.shell\ntry:\n likewise.shell.main(sys.argv[1:])\nexcept SystemExit as end:\n"
        " names = ('torch', 'transformers', 'sentence_transformers', 'indexer.encoders.load')\n"
        " print(json.dumps([name for name in names if name in sys.modules])); sys.exit(end.code)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, "search", str(folder), "why do stars explode", "-k", "20", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    answer, packages = said.stdout.splitlines()
    hits = {hit["uri"]: hit["score"] for hit in json.loads(answer)["hits"]}
    return hits, json.loads(packages), said.stderr


def command(*arguments: str) -> None:
    """A command line in this process, where torch is loaded already."""
    with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
        likewise.shell.main([*arguments])
    assert ended.value.code == 0


@pytest.mark.slow
def test_a_question_to_a_compiled_index_needs_no_torch_and_to_a_damaged_one_says_so(
    tiny: Callable[[str], Path], tmp_path: Path, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "x.index"
    (tmp_path / "a.jsonl").write_text(lines(*({"id": d.uri, "text": d.text} for d in documents(20))))
    command("index", str(folder), str(tmp_path / "a.jsonl"), "--model", f"{tiny('bert')}:mean")
    assert (folder / "encoder" / "manifest.json").exists()
    # The graph is prepared for this machine already, and the first question prepares no other.
    prepared = {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").rglob("encoders/*/*.*")}
    assert sorted(file.suffix for file in prepared) == [".bin", ".blob", ".xml"]
    compiled, packages, warned = asked(folder)
    assert (packages, warned, len(compiled)) == ([], "", 20)
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").rglob("encoders/*/*.*")} == prepared
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))  # a copy on another machine
    assert asked(folder) == (compiled, [], "")
    assert len([*(tmp_path / "elsewhere").rglob("*.blob")]) == 1
    tokenizer = folder / "encoder" / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace("bank", "bunk", 1))
    damaged, packages, warned = asked(folder)
    # The runtimes' vectors of a text have a cosine of 0.999 or more, so the question's differ by 0.045 at most.
    assert damaged == pytest.approx(compiled, abs=0.045)
    assert "torch" in packages
    assert "tokenizer.json is not the file that was written" in warned
    command("compile", str(folder))
    assert asked(folder) == (compiled, [], "")
