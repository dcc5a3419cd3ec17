"""The caller of the worker processes, in which readers run. It ends a worker that takes too long.

A worker reads many files, because starting it takes half a second.
"""

from __future__ import annotations

import atexit
import json
import threading
from dataclasses import replace
from typing import Any

from indexer.ledger import Code, from_stored, notes_from_stored
from indexer.records import Section
from indexer.sources.content import Content, Skip, Unreadable
from indexer.sources.files.child import Child, ChildEnded
from indexer.sources.limits import MAX_FILE_SECONDS

WORKERS = 2
"""Maximum worker processes. The second is started when a file takes so long that another one is read meanwhile."""


class Extractor:
    """A few workers, each started when it is needed and again after a file that ended it. Safe to share among threads.

    Attributes:
        depth: number of files that are open round each other in this process and those that wait for it. A worker sets
            it.
        late: files, and messages of mailboxes, that took too long when the sample was read. Each is refused once.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.late = set[str]()
        self._idle, self._busy = list[Child](), set[Child]()
        self._slots = threading.BoundedSemaphore(WORKERS)

    def extract(
        self,
        path: str,
        reader: str,
        max_characters: int,
        text: str | None = None,
        data: bytes | None = None,
        seconds: float | None = None,
    ) -> Content:
        """Read one file, or a message of a mailbox.

        Args:
            reader: the name of its reader, as `doors.find` has it.
            max_characters: longest text to accept.
            text: the decoded text, for a reader that gets it in place of the path.
            data: the bytes of the message, which its reader gets in place of the path.
            seconds: maximum time; None for the usual limit.

        Raises:
            Unreadable: the file is damaged, encrypted or over a bound, or the reader crashed.
            Skip: it holds nothing to index.
        """
        if path in self.late:
            self.late.discard(path)
            raise Unreadable(Code.TOO_SLOW(f"{MAX_FILE_SECONDS:g}"))
        values = {"path": path, "reader": reader, "max_characters": max_characters, "text": text}
        content = _content_of(self.ask({**values, "depth": self.depth + 1}, data, seconds))
        return content if text is None else replace(content, text=text)

    def close(self) -> None:
        """End the workers; the next file starts a new one."""
        for worker in (*self._idle, *self._busy):
            worker.close()

    def ask(self, request: dict[str, Any], data: bytes | None, most: float | None) -> dict[str, Any]:
        """Send a request to a worker and return its answer.

        Args:
            request: values of JSON. If "part" is the name of a part of likewise, the `answer(request, data)` of its
                door answers.
            most: maximum seconds; None for the usual limit.

        Raises:
            Unreadable: as `extract`.
        """
        seconds = MAX_FILE_SECONDS if most is None else most
        messages = [json.dumps({**request, "has_data": data is not None, "seconds": seconds}).encode()]
        messages += [] if data is None else [data]
        with self._slots:
            worker = self._free_worker()
            self._busy.add(worker)
            try:
                answer: dict[str, Any] = json.loads(worker.ask(messages, seconds))
            except ChildEnded as ended:
                worker.close()
                if ended.is_late:
                    raise Unreadable(Code.TOO_SLOW(f"{seconds:.2g}")) from ended
                raise Unreadable(Code.READER_CRASHED(*str(ended).split())) from ended
            except BaseException:  # interrupted: the answer on its way would be taken for that of the next file
                worker.close()
                raise
            finally:
                self._busy.discard(worker)
            self._idle.append(worker)
        if "failed" in answer:
            raise Unreadable(from_stored(answer["failed"]))
        return answer

    def _free_worker(self) -> Child:
        """Return a worker that waits, or a new one."""
        while self._idle:
            if (worker := self._idle.pop()).is_running:
                return worker
            worker.close()
        return Child("indexer.sources.files.worker")


def _content_of(answer: dict[str, Any]) -> Content:
    """Return the content that an answer of an extractor has. Raises Skip if it holds nothing to index."""
    if "skipped" in answer:
        raise Skip(from_stored(answer["skipped"]))
    content = {
        **answer["content"],
        "sections": tuple(Section(**section) for section in answer["content"]["sections"]),
        "note": from_stored(answer["content"]["note"]),
        "unread": notes_from_stored(answer["content"]["unread"]),
        "unread_pages": tuple(answer["content"]["unread_pages"]),
    }
    return Content(**content)


EXTRACTOR = Extractor()
"""The extractor that every source of the process shares."""

atexit.register(EXTRACTOR.close)
