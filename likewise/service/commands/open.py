"""likewise open: index a folder, and search it in the browser."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
import threading
import webbrowser
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import click

from indexer.errors import BadInput, LikewiseError
from likewise.shell.arguments.default_index import DEFAULT_NAME, names_index
from likewise.shell.arguments.options import HelpfulCommand, complete_path
from likewise.shell.commands.index import index_command
from likewise.shell.commands.update import update
from likewise.shell.terminal.extras import missing_extra
from likewise.shell.terminal.output import quoted, say, shown, warn

_HOST = "127.0.0.1"


@click.command("open", cls=HelpfulCommand)
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER", shell_complete=complete_path)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True,
              help="If it is taken, the next one is used. 0 takes a free port.")  # fmt: skip
def open_command(folders: tuple[str, ...], port: int) -> None:
    """Index FOLDER and search it in the browser, until Ctrl-C.

    The index is FOLDER/.likewise. The next time, only what has changed is read. Documents whose file is gone leave the
    index, unless they are more than half of it. Without a display, open the printed address in a browser.

    The page shows the files themselves too. It can be opened on this machine alone, by everybody who is logged in.

    \b
    likewise open ~/papers
    likewise open "My notes" --port 9000
    """
    try:
        from likewise.service.http import app, run
    except ModuleNotFoundError as error:
        raise missing_extra(error, "serve") from error
    from likewise.federation.index_names import name_of

    if "LIKEWISE_TOKEN" in os.environ:
        raise BadInput("LIKEWISE_TOKEN is set, and a browser cannot send a token: unset LIKEWISE_TOKEN")
    folder = _folder(folders)
    _require_allowed(port)
    name = name_of(address := str(Path(folder) / DEFAULT_NAME))
    _update(folder, address)
    create = partial(app.create_app, {name: address}, originals=True)
    for each in range(port, 65536):
        try:
            run.serve(create, _HOST, each, partial(_announce, name, port))  # one process, because one person asks
            return
        except run.CannotListen as error:
            if each == 65535 or getattr(error.__cause__, "errno", None) != errno.EADDRINUSE:
                raise


def _folder(given: tuple[str, ...]) -> str:
    """Return the path of the folder to open.

    Raises:
        UsageError, BadInput: it is not one folder that can be listed, or it is an index.
    """
    from indexer.stores.addresses.open import is_uri

    if len(given) > 1:
        raise click.UsageError(f"name one FOLDER; with blanks in quotation marks: {shlex.quote(' '.join(given))}")
    folder = os.path.expanduser(given[0])  # noqa: PTH111 - a quoted ~ comes here as it is
    # Nobody knows what a closed folder is.
    if names_index(folder) and (is_uri(folder) or os.access(folder, os.X_OK)):
        raise BadInput(f"{shown(folder)}: is an index, not a folder of documents: likewise serve {quoted(folder)}")
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise BadInput(
            f"{folder or quoted(folder)}: {error.strerror}: name a folder that exists and that you may read"
        ) from error
    return folder


def _require_allowed(port: int) -> None:
    """Refuse a port that this user may not listen on. It is checked first, as reading a folder takes minutes."""
    with socket.socket() as probe, suppress(OSError):  # if it is taken, the next one is tried
        try:
            probe.bind((_HOST, port))
        except PermissionError as error:
            raise BadInput(
                f"port {port}: {error.strerror}: choose another --port; --port 0 takes a free port"
            ) from error


def _update(folder: str, address: str) -> None:
    """Make the index of a folder as `likewise index` does, or update it as `likewise update` does.

    An index with documents is shown even if it cannot be updated.

    Raises:
        LikewiseError: no document could be read, or the folder cannot hold an index.
    """
    recorded, documents = _state(address)
    if not documents and not os.access(folder, os.W_OK):
        elsewhere = f"likewise index NAME.index {quoted(folder)}, and likewise serve NAME.index"
        raise BadInput(f"{folder}: cannot be written, and its index would be in it: make one elsewhere: {elsewhere}")
    # An empty folder may be a disk that is not mounted. As in `likewise watch`, it removes nothing.
    is_any_empty = any(os.path.isdir(source) and not any(Path(source).glob("*")) for source in recorded)  # noqa: PTH112
    command, arguments = (update, ["--prune"] * (not is_any_empty)) if recorded else (index_command, ["--", folder])
    # Another process may be indexing for long, and what it has can be searched.
    arguments = ["--index", address, *["--no-wait"] * (documents > 0), *arguments]
    try:
        with command.make_context(command.name, arguments, click.get_current_context()) as context:
            command.invoke(context)
    except LikewiseError as error:
        if not documents:
            raise
        warn(f"{error}. The page shows what the index has. By hand: likewise update {quoted(address)} --prune")
    if not _state(address)[1]:
        raise BadInput(f"{folder}: none of its files can be read: likewise info {quoted(address)} --ledger says why")


def _state(address: str) -> tuple[list[str], int]:
    """Return the recorded sources of an index, and its number of documents. Without an index there are none."""
    from indexer.stores.addresses.open import is_store, open_store

    if not is_store(address):
        return [], 0
    with closing(open_store(address)) as store, store.snapshot() as snapshot:
        return [source.argument for source in snapshot.settings.sources], snapshot.documents


def _announce(name: str, port: int, address: str) -> None:
    """Print the address of the page, and open it in the browser if there is a display."""
    if port and not address.endswith(f":{port}"):
        say(f"likewise: port {port} is taken: this is the next one that is free", err=True)
    has_display = sys.platform != "linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    what = "if no browser opens, open this address in one" if has_display else "open this address in a browser"
    say(f"likewise: serving {name} at {address}\nlikewise: {what}; Ctrl-C ends it", err=True)
    if has_display:  # in a thread, because some browsers return only when they are closed
        threading.Thread(target=webbrowser.open, args=(address,), name="browser", daemon=True).start()
