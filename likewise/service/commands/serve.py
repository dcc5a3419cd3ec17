"""likewise serve: answer over HTTP."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from indexer.errors import BadInput
from likewise.shell.arguments.default_index import indexes_to_serve
from likewise.shell.arguments.options import HelpfulCommand
from likewise.shell.terminal.extras import missing_extra
from likewise.shell.terminal.output import say, shown, warn

_WATCH = """
import os, signal, threading

def end_with_the_service():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end_with_the_service, daemon=True).start()
from likewise.shell import main; main()
"""
"""The program of the process that watches. The standard input of the process ends when the service ends, also after
kill -9."""


def _origins(context: click.Context, parameter: click.Parameter, origins: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what no browser sends as an origin."""
    for origin in origins:
        if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+", origin):
            raise click.BadParameter(f"{origin!r} is not a website: write https://NAME or https://NAME:PORT")
    return origins


@click.command(cls=HelpfulCommand)
@click.argument("indexes", metavar="[NAME=]INDEX...", nargs=-1)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, metavar="N",
              help="Port to listen on; 0 takes a free one.")  # fmt: skip
@click.option("--writable", is_flag=True, help="Let clients add and remove documents. A new INDEX is made.")
@click.option("--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Clients must send the token in this file, or in LIKEWISE_TOKEN.")  # fmt: skip
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    metavar="N",
    show_default="one per core, 4 at most; 1 with --writable or --rerank",
    help="How many processes answer.",
)
@click.option("--rerank", metavar="MODEL", help="Answer /v1/rerank and /v2/rerank with this cross-encoder.")
@click.option("--watch", "watched", multiple=True, metavar="SOURCE",
              help="Keep INDEX up to date with this SOURCE, as likewise watch does. Repeatable.")  # fmt: skip
@click.option("--allowed-host", "allowed_hosts", multiple=True, metavar="NAME",
              help="Name of this host in the addresses that clients use. Repeatable.")  # fmt: skip
@click.option("--cors-origin", "cors_origins", multiple=True, metavar="ORIGIN", callback=_origins,
              help="Website whose scripts may ask, such as https://example.org. Repeatable.")  # fmt: skip
@click.option("--access-log/--no-access-log", default=True, help="Write a line of JSON per request to standard output.")
@click.option("--log-queries", is_flag=True, help="Also write the text of questions to the log.")
@click.option("--drain", type=click.IntRange(0, 3600), default=0, show_default=True, metavar="SECONDS",
              help="After the signal to end, still answer for this time. /readyz then refuses.")  # fmt: skip
@click.option("--open-readyz", is_flag=True, help="Answer /readyz without the token.")
@click.option("--originals", is_flag=True,
              help="Give clients the files that documents were read from, and pictures of their pages.")  # fmt: skip
def serve(
    indexes: tuple[str, ...],
    host: str,
    port: int,
    writable: bool,
    token_file: Path | None,
    workers: int | None,
    rerank: str | None,
    watched: tuple[str, ...],
    allowed_hosts: tuple[str, ...],
    drain: int,
    **answering: Any,
) -> None:
    """Answer questions to each INDEX on a page in the browser, over HTTP and over MCP, until Ctrl-C or SIGTERM.

    The address of the page is printed. An index is named by its folder without `.index`; NAME=INDEX gives it another
    name. The service listens on this machine alone, unless --host says otherwise; then it needs a token. GET
    /openapi.json describes every request.

    \b
    likewise serve papers.index
    likewise serve papers.index notes=~/notes.index --port 8080 --writable
    curl -s localhost:8765/v1/indexes/papers/search -d '{"query": "how do vaccines work", "k": 3}'
    """
    addresses = indexes_to_serve(indexes)
    try:
        from likewise.service.http.app import create_app
        from likewise.service.http.guard import is_loopback
        from likewise.service.http.run import default_workers
        from likewise.service.http.run import serve as run
    except ModuleNotFoundError as error:
        raise missing_extra(error, "serve") from error

    token = read_token(token_file)
    if not is_loopback(host) and token is None:
        raise BadInput(
            f"{host} can be reached from other machines, and there is no token: set LIKEWISE_TOKEN, give "
            "--token-file, or listen on 127.0.0.1"
        )
    if writable and not watched:
        _make_new(addresses.values())
    create = partial(
        create_app,
        addresses,
        writable=writable,
        token=token,
        rerank=rerank,
        allowed_hosts=(*allowed_hosts, host),
        loopback_only=is_loopback(host),
        **answering,
    )
    workers = workers or default_workers(addresses.values(), loads_models=writable or rerank is not None)
    with _watching([*addresses.values()], watched):
        announced = f"likewise: serving {', '.join(addresses)} at"
        run(create, host, port, lambda address: say(f"{announced} {address}", err=True), workers=workers, drain_s=drain)


def _make_new(addresses: Iterable[str]) -> None:
    """Make the indexes that do not exist. The first documents choose their models, unless a configuration file names
    one."""
    from indexer import Index
    from indexer.indexing.new_index import AUTO_MODEL
    from indexer.stores.addresses.open import is_store
    from likewise.shell.arguments.configuration import read_configuration

    for address in addresses:
        if not is_store(address):
            model = str(read_configuration().get("model", AUTO_MODEL))
            Index.create(address, model).close()
            choice = "its first documents choose the model" if model == AUTO_MODEL else f"its model is {shown(model)}"
            say(f"likewise: {shown(address)} is new: {choice}", err=True)


@contextmanager
def _watching(addresses: list[str], sources: tuple[str, ...]) -> Iterator[None]:
    """Run `likewise watch` in a process of its own for the length of a block, so that embedding slows no question."""
    if not sources:
        yield
        return
    if len(addresses) != 1:
        raise BadInput(f"--watch needs exactly one INDEX, and {len(addresses)} are served: start a watch for each")
    from indexer.stores.addresses.open import is_store

    # The address is not among the arguments, which every user of this machine can see: it may hold a password.
    with subprocess.Popen(
        [sys.executable, "-c", _WATCH, "watch", "--", *sources],
        env=os.environ | {"LIKEWISE_INDEX": addresses[0]},
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
    ) as process:
        stopping = threading.Event()
        threading.Thread(target=_report_end, args=(process, stopping), daemon=True).start()
        try:
            while not is_store(addresses[0]):  # a new index, which its first scan makes
                if process.poll() is not None:
                    raise click.exceptions.Exit(process.returncode)  # its reason is on standard error
                time.sleep(0.1)
            yield
        finally:
            stopping.set()
            process.terminate()


def _report_end(process: subprocess.Popen[bytes], stopping: threading.Event) -> None:
    """Say that a watch has ended by itself: the service continues with the index as it is."""
    code = process.wait()
    if not stopping.is_set():
        warn(f"the watch has ended with exit code {code}, so changes are no longer indexed: start the service again")


def read_token(file: Path | None) -> str | None:
    """Return the token in the file, else the token in LIKEWISE_TOKEN, else None."""
    if file is None:
        return _checked(os.environ["LIKEWISE_TOKEN"], "LIKEWISE_TOKEN") if "LIKEWISE_TOKEN" in os.environ else None
    try:
        return _checked(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: cannot be read as a token: {error}") from error


def _checked(token: str, source: str) -> str:
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise BadInput(
            f"{source}: holds no token: write one line of letters and digits, such as `openssl rand -hex 32` prints"
        )
    return token
