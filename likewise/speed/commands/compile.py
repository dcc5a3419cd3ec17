"""likewise compile: write the encoder of an index as a graph, so that questions need no torch."""

from __future__ import annotations

import click

from likewise.shell.arguments.options import IndexCommand, json_option, no_wait_option, trust_option
from likewise.shell.terminal.output import say, say_json, shown


@click.command("compile", cls=IndexCommand)
@trust_option
@no_wait_option
@json_option
def compile_command(path: str, trust_remote_code: bool, no_wait: bool, as_json: bool) -> None:
    """Compile the encoder of INDEX, so that questions are answered without loading torch.

    likewise index does this by itself when it first embeds documents.

    \b
    likewise compile papers.index
    """
    from indexer.encoders.machine.runtime import Runtime
    from indexer.indexing.context import Context
    from indexer.indexing.core import IndexCore
    from likewise.shell.terminal.progress import Console
    from likewise.speed.door import SPEED

    context = Context(Runtime(trust_remote_code=trust_remote_code), listener=Console(), wait=not no_wait)
    with IndexCore.open(path, context=context) as index, index.writer():
        SPEED.compile_index(index)
        folder = index.store.artifacts()
    size = sum(file.stat().st_size for file in folder.iterdir())
    if as_json:
        say_json({"encoder": str(folder), "bytes": size})
    else:
        say(f"{shown(str(folder))}: {size / 2**20:.1f} MB; its vectors equal those of torch")
