"""Workers that are actors of Ray. The slow tests run a cluster of a head and two nodes on this machine."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docx
import numpy as np
import pytest
from opened import snapshot_of
from pdf_files import words, write
from postgres_nodes import free_port
from postgres_server import new_address

from indexer import BadInput, Document, Index
from indexer.encoders.load import load_encoder
from indexer.errors import WorkersLost
from indexer.indexing.core import IndexCore
from indexer.ledger import HELD
from indexer.listener import Listener
from likewise.workers import ray_workers
from likewise.workers.ray_workers import RayWorkers, _connect, _room, parse_resources
from likewise.workers.wire import Answering
from search import Searcher

CHANCE = random.Random(5)
DOCUMENTS = [
    Document(f"d{number:03}", " ".join(f"word{CHANCE.randrange(300)}" for _ in range(CHANCE.randrange(3, 90))), "word1")
    for number in range(300)
]


def test_resources_are_named_as_ray_names_them() -> None:
    assert parse_resources(()) == {}
    assert parse_resources(("GPU=1",)) == {"GPU": 1}
    assert parse_resources(("GPU=0.5,CPU=4", "big=1")) == {"GPU": 0.5, "CPU": 4, "big": 1}
    for wrong in ("GPU", "GPU=", "=1", "GPU=0", "GPU=-1", "GPU=many", "GPU=inf", "GPU=1,GPU=x", ""):
        with pytest.raises(BadInput, match="is not NAME=NUMBER"):
            parse_resources((wrong,))


def test_what_is_wrong_is_refused_before_a_cluster_is_asked(tmp_path: Path, static_model: Path) -> None:
    with Index.create(tmp_path / "x.index", static_model) as index:
        embedder = index.embedder
        with pytest.raises(BadInput, match="'GPU=0' is not NAME=NUMBER"):
            RayWorkers(embedder, resources={"GPU": 0})
    if (ray := sys.modules.get("ray")) is not None:
        assert not ray.is_initialized()


def test_an_actor_takes_a_gpu_or_a_whole_node() -> None:
    two_gpus, one_gpu, none = {"CPU": 16.0, "GPU": 2.0}, {"CPU": 8.0, "GPU": 1.0}, {"CPU": 8.0}
    assert _room([two_gpus, one_gpu, none], {}) == ({"GPU": 1}, 3)
    assert _room([none, {"CPU": 4.0}, {}], {}) == ({"CPU": 4}, 3)  # eight cores are two times four
    assert _room([two_gpus, one_gpu, none], {"CPU": 8}) == ({"CPU": 8}, 4)
    assert _room([two_gpus, none], {"GPU": 1, "CPU": 16}) == ({"GPU": 1, "CPU": 16}, 1)
    assert _room([none], {"GPU": 1}) == ({"GPU": 1}, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "ray://nowhere"], "is not a number of processes"),
        (["--worker-resources", "GPU=1"], "--worker-resources is for the machines of a Ray cluster"),
        (["--workers", "2", "--worker-resources", "GPU=1"], "--worker-resources is for the machines of a Ray cluster"),
    ],
)
def test_what_is_not_of_a_cluster_is_refused(
    arguments: list[str], message: str, likewise: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("a text")
    said = likewise("index", tmp_path / "x.index", tmp_path / "a.txt", *arguments)
    assert (said.code, message in said.err) == (2, True)


@pytest.mark.parametrize("failures", [0, 2, 3])
def test_a_server_of_a_client_that_dies_is_started_again(failures: int) -> None:
    addresses: list[str] = []

    def init(address: str, **_: Any) -> None:
        addresses.append(address)
        if len(addresses) <= failures:
            raise ConnectionAbortedError("Initialization failure from server")

    pretended = SimpleNamespace(init=init, exceptions=SimpleNamespace(RayError=RuntimeError))
    refusal = pytest.raises(WorkersLost, match="Initialization failure") if failures == 3 else nullcontext()
    with refusal:
        _connect(pretended, "ray://head:10001")
    assert addresses == ["ray://head:10001"] * min(failures + 1, 3)


CLIENT_PORT = free_port()
"""Port of the cluster for Ray Client."""

LOCAL = """
import sys
import psutil
from indexer import Document, Index
from likewise.workers import RayWorkers

def listening(process):
    try:
        return [each for each in process.net_connections("tcp") if each.status == "LISTEN"]
    except psutil.NoSuchProcess:  # Ray has processes of a moment
        return []

with Index.create(sys.argv[1], sys.argv[2]) as index:
    workers = RayWorkers(index.embedder)
    index.add([Document("a", "word1 word2"), Document("b", "word3")], workers=workers)
    ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
    sockets = [each for process in ours for each in listening(process)]
    print(len(index), len(ours) > 3, sorted({each.laddr.ip.removeprefix("::ffff:") for each in sockets}))
    workers.close()
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_ray_of_this_machine_alone_listens_on_loopback(tmp_path: Path, static_model: Path, environment: Any) -> None:
    pytest.importorskip("ray")
    command = [environment.python, "-c", LOCAL, str(tmp_path / "x.index"), str(static_model)]
    own = {**os.environ, "RAY_ADDRESS": "local", "RAY_TMPDIR": tempfile.mkdtemp(prefix="lw-ray-")}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=own)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "2 True ['127.0.0.1']"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without room for actors and two nodes with room for one each; this process is connected to it."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # with it, one server of a client in ten dies when it is forked
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 2**27}
    started = Cluster(initialize_head=True, head_node_args={**head, "ray_client_server_port": CLIENT_PORT})
    for _ in range(2):
        started.add_node(num_cpus=1, object_store_memory=2**27)
    started.wait_for_nodes()
    ray.init(address=started.address, log_to_driver=False, logging_level="ERROR")
    yield started
    ray.shutdown()
    started.shutdown()


class Removing(Listener):
    """Calls a function in a thread, once three workers embed at the same time."""

    def __init__(self, remove: Callable[[], None]) -> None:
        self.thread = threading.Thread(target=remove)

    def workers(self, busy: int, workers: int) -> None:
        if busy == 3 and self.thread.ident is None:
            self.thread.start()


def contents(address: str | Path) -> tuple[list[Any], list[Any], list[Any]]:
    """Documents with their passages, the ledger, and the vectors of an index."""
    with Index.open(address) as index:
        rows = snapshot_of(index).ledger()
        ledger = sorted((row.file, row.uri, "held" if row.state in HELD else row.state, row.reason) for row in rows)
        items = sorted(index._core.store.export(), key=lambda item: item.document.uri)
        documents = [(item.document, item.spans) for item in items]
        return documents, ledger, [np.asarray(item.vectors, np.float32) for item in items]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("default")
def test_a_node_that_is_removed_while_it_works_loses_nothing(
    cluster: Any, tmp_path: Path, static_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IndexCore, "batch_characters", 2000)
    with Index.create(tmp_path / "serial.index", static_model) as serial:
        serial.add(DOCUMENTS)
    extra = cluster.add_node(num_cpus=1, object_store_memory=2**27)
    cluster.wait_for_nodes()
    with Index.create(tmp_path / "x.index", static_model) as index:
        removing = Removing(lambda: cluster.remove_node(extra))
        workers = RayWorkers(index.embedder, listener=removing)
        try:
            assert workers.window == 6
            for number in count():  # on a busy machine the third actor may start when the first round has ended
                index.add([replace(document, title=f"round {number}") for document in DOCUMENTS], workers=workers)
                if removing.thread.ident is not None:
                    break
            removing.thread.join()
            index.add(DOCUMENTS, workers=workers)
            index.add([replace(document, title="word2") for document in DOCUMENTS[:100]], workers=workers)
            index.add(DOCUMENTS[:100], workers=workers)
        finally:
            workers.close()
        (note,) = workers.notes
        assert note.startswith("1 worker lost and replaced, the last because Actor")
    assert _equal(contents(tmp_path / "x.index"), contents(tmp_path / "serial.index"))


def _equal(ours: Any, theirs: Any) -> bool:
    same = all(np.allclose(one, other, atol=1e-3) for one, other in zip(ours[2], theirs[2], strict=True))
    return bool(same and ours[:2] == theirs[:2])


def recording(folder: Path, hangs: bool) -> type[Answering]:
    """Return workers that write the GPU they have into a folder; the first that gets documents may hang."""

    class Recording(Answering):
        def answer(self, request: bytes) -> bytes:
            if self._embedder is None:
                gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "")
                Path(folder, f"gpu-{gpu}-{os.getpid()}").touch()
            elif hangs:
                with suppress(FileExistsError):
                    Path(folder, "hung").touch(exist_ok=False)
                    threading.Event().wait()
            return super().answer(request)

    return Recording


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("default")
def test_an_actor_that_hangs_is_replaced(
    cluster: Any, tmp_path: Path, static_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IndexCore, "batch_characters", 2000)
    monkeypatch.setattr(ray_workers, "Answering", recording(tmp_path, hangs=True))
    with Index.create(tmp_path / "serial.index", static_model) as serial:
        serial.add(DOCUMENTS)
    with Index.create(tmp_path / "x.index", static_model) as index:
        workers = RayWorkers(index.embedder, seconds=20)
        try:
            index.add(DOCUMENTS, workers=workers)
        finally:
            workers.close()
        assert workers.notes[-1].endswith("lost and replaced, the last because it did not answer within 20 seconds")
    assert (tmp_path / "hung").exists()
    assert _equal(contents(tmp_path / "x.index"), contents(tmp_path / "serial.index"))


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("resources", "actors"),
    [pytest.param({}, 2, marks=pytest.mark.long), pytest.param({"GPU": 0.5}, 4, marks=pytest.mark.slow)],
)
def test_each_actor_gets_a_gpu_of_its_own(
    resources: dict[str, float],
    actors: int,
    cluster: Any,
    tmp_path: Path,
    static_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two GPUs that Ray is told of are placed as two that are there."""
    import ray

    monkeypatch.setattr(IndexCore, "batch_characters", 2000)
    monkeypatch.setattr(ray_workers, "Answering", recording(tmp_path, hangs=False))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")  # which a node asks when it starts
    node = cluster.add_node(num_cpus=0, num_gpus=2, object_store_memory=2**27)
    cluster.wait_for_nodes()
    try:
        with Index.create(tmp_path / "x.index", static_model) as index:
            workers = RayWorkers(index.embedder, resources=resources)
            assert workers.window == 2 * actors
            try:
                for number in count():  # the last actor may start when the first round has ended
                    index.add([replace(each, title=f"round {number}") for each in DOCUMENTS], workers=workers)
                    if len(seen := [file.name.split("-")[1] for file in tmp_path.glob("gpu-*")]) == actors:
                        break
            finally:
                workers.close()
        assert sorted(seen) == sorted(["0", "1"] * (actors // 2))
    finally:
        cluster.remove_node(node)
        while any(each["Alive"] and each["Resources"].get("GPU") for each in ray.nodes()):
            time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("default")
def test_a_run_from_outside_of_the_cluster(cluster: Any, tmp_path: Path, static_model: Path, environment: Any) -> None:
    """Ray Client, from a process that is not of the cluster."""
    records = tmp_path / "records.jsonl"
    records.write_text("".join(json.dumps({"id": each.uri, "text": each.text}) + "\n" for each in DOCUMENTS[:50]))
    program = "from likewise.shell import main; main()"
    command = [environment.python, "-c", program, "index", str(tmp_path / "x.index"), str(records), "--json"]
    said = [
        subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        for more in (
            ["--model", str(static_model), "--workers", f"ray://127.0.0.1:{CLIENT_PORT}"],
            ["--workers", f"ray://127.0.0.1:{CLIENT_PORT}"],
        )
    ]
    assert [run.returncode for run in said] == [0, 0], said
    first, again = (json.loads(run.stdout.splitlines()[-1]) for run in said)
    assert (first["indexed"], again["indexed"], again["unchanged"]) == (50, 0, 50)


def mixed_files(folder: Path, evaluation_data: Path) -> Path:
    """Records of SciFact beside Markdown, a table, PDF, DOCX and files that are skipped or fail."""
    folder.mkdir()
    with (evaluation_data / "data" / "scifact" / "corpus.jsonl").open() as lines:
        (folder / "corpus.jsonl").write_text("".join(line for line, _ in zip(lines, range(400), strict=False)))
    for file in sorted((evaluation_data / "data" / "rust-book").rglob("*.md"))[:10]:
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "table.csv").write_text("id,text\n1,a row about pears\n2,a row about ships\n")
    write(folder / "paper.pdf", words((72, 700, "Vaccines train the immune system.")))
    word = docx.Document()
    word.add_paragraph("The lighthouse keeper counted ships.")
    word.save(str(folder / "letter.docx"))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing else")
    (folder / "empty.txt").write_text("")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("store", ["folder", "database"])
def test_a_run_on_a_cluster_makes_the_index_of_a_run_without(
    store: str, cluster: Any, tmp_path: Path, evaluation_data: Path, likewise: Callable[..., Any], register: Any
) -> None:
    model = evaluation_data / "models" / "potion-base-4m-fp32"
    register(named=load_encoder)
    source = mixed_files(tmp_path / "source", evaluation_data)
    address = tmp_path / "x.index" if store == "folder" else new_address()
    serial = likewise("index", tmp_path / "serial.index", source, "--model", model, "--json")
    ran = likewise("index", address, source, "--model", model, "--workers", "ray", "--json")
    assert (ran.code, serial.code) == (1, 1)  # the broken file
    assert {**ran.json, "notes": []} == {**serial.json, "notes": []}
    assert _equal(contents(address), contents(tmp_path / "serial.index"))
    hits = [
        [hit.uri for hit in Searcher(one).search("do vaccines train the immune system", k=5)]
        for one in (address, tmp_path / "serial.index")
    ]
    assert hits[0] == hits[1]
    again = likewise("index", address, source, "--workers", "ray", "--json")
    assert (again.json["indexed"], again.json["unchanged"]) == (0, ran.json["indexed"])
