"""The reports of a long call while it works. Everything that the caller should know is also in the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from indexer.records import Changes


@dataclass(frozen=True, slots=True)
class Commit:
    """The state of a run after one of its commits.

    Attributes:
        done: documents that were embedded, or copied, so far.
        passages: passages that were embedded, or copied, so far.
        position: bytes of the sources up to the last document of the commit. If the model is changed or the index is
            copied: documents that were compared so far.
        total: the last position; None if it is unknown.
        changes: the changes of this commit.
    """

    done: int
    passages: int
    position: int
    total: int | None = None
    changes: Changes = field(default_factory=Changes)


class Listener:
    """The receiver of what a call reports while it works. Every method does nothing: override what is needed."""

    def note(self, text: str) -> None:
        """Receive a fact that the user should read before the call ends. It is also among the notes of the result."""

    def chosen(self, text: str) -> None:
        """Receive the model that the texts have chosen for a new index, and why."""

    def step(self, text: str) -> None:
        """Receive the name of a long step that begins."""

    def advanced(self, done: int, total: int) -> None:
        """Receive how many rounds of the last step are done, for a step that counts them."""

    def waiting(self, text: str) -> None:
        """Receive, before the call waits for another writer, a message that names this writer."""

    def reading(self, file: str, files: int, size: int) -> None:
        """Receive the file that is read or passed over, the number of files so far and their size in bytes."""

    def embedding(self, documents: int) -> None:
        """Receive the number of documents that are compared and embedded next."""

    def embedded(self, passages: int, total: int) -> None:
        """Receive how many passages of a batch are embedded so far. A thread of the encoder may call this. An
        error that is raised here ends the embedding."""

    def workers(self, busy: int, workers: int) -> None:
        """Receive how many workers embed, and how many there are. A thread of the workers may call this."""

    def committed(self, commit: Commit) -> None:
        """Receive the state of the run after a commit. An error that is raised here ends the run."""


class Collecting(Listener):
    """Keeps the notes that it receives, for a result.

    Attributes:
        texts: the notes in their order.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


SILENT = Listener()
"""The listener of a caller that does not listen."""
