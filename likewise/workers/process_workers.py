"""Workers that are processes of this machine, `python -m likewise.workers.serve`."""

from __future__ import annotations

from indexer.encoders.machine.hardware import cores, gpus, named_threads
from indexer.errors import count_of
from indexer.indexing.embedder import Embedder
from indexer.listener import SILENT, Listener
from indexer.sources.files.child import Child, ChildEnded
from likewise.workers.pool import BATCH_SECONDS, Pool, Worker, WorkerLost


class ProcessWorkers(Pool):
    """A number of processes of this machine, each with its own copy of the model. Members are those of `Pool`.

    On one CPU a single process already uses all cores, so several processes help only where each has its own GPU.
    """

    def __init__(
        self, embedder: Embedder, count: int, *, seconds: float = BATCH_SECONDS, listener: Listener = SILENT
    ) -> None:
        """Prepare `count` processes that embed as `embedder` does, which is `index.embedder`.

        With several GPUs, each process sees one of them. Without, the processes share the cores.

        Args:
            seconds: maximum time for a batch of about 10 seconds of work. A process that needs longer is replaced.
            listener: receives notes, and how many workers are busy.

        Raises:
            BadInput: the count is not positive.
        """
        super().__init__(embedder, self._start_process, count, seconds=seconds, listener=listener)
        if count > 1 and not (_uses_gpus(embedder.runtime.device) and gpus()):
            self._note(
                f"{count} processes share {count_of(cores(), 'core')}, and one process uses all of them by itself: "
                "several help where each has a GPU of its own"
            )

    def _start_process(self, number: int) -> Worker:
        return _Process(_environment(number, self._count, self._embedder.runtime.device))


def _uses_gpus(device: str) -> bool:
    return device in ("auto", "cuda")


def _environment(number: int, count: int, device: str) -> dict[str, str]:
    if _uses_gpus(device) and (visible := gpus()):
        return {"CUDA_VISIBLE_DEVICES": visible[number % len(visible)]}
    return {"OMP_NUM_THREADS": str(named_threads() or max(1, cores() // count))}


class _Process:
    def __init__(self, environment: dict[str, str]) -> None:
        self._child = Child("likewise.workers.serve", environment)

    def ask(self, request: bytes, seconds: float) -> bytes:
        try:
            return self._child.ask([request], seconds)
        except ChildEnded as ended:
            late = f"it did not answer within {seconds:g} seconds"
            raise WorkerLost(late if ended.is_late else f"its process ended: {ended}") from ended

    def close(self) -> None:
        self._child.close()
