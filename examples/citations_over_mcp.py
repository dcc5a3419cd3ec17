"""Answers with citations over MCP: a stand-in for the model asks the tool `search` and cites what it returns.

Prints:

    The moon pulls the sea and makes the tides. [tides.txt]
"""

import asyncio
import sys
from typing import Any

from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

from likewise import Document, Index

with Index.open("tides.index", create=True) as index:
    index.add(
        [Document("tides.txt", "The moon pulls the sea and makes the tides.", "Tides"), Document("tea", "Tea cools.")]
    )


def scripted_model(question: str, hits: list[dict[str, Any]]) -> str:
    """Answer from the hits alone, as a prompt would ask a model to."""
    return f"{hits[0]['text']} [{hits[0]['uri']}]"


async def main(question: str) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=["-c", "from likewise.shell import main; main()", "mcp", "tides.index"]
    )
    async with Client(stdio_client(server)) as agent:
        found = await agent.call_tool("search", {"query": question, "k": 1})
        print(scripted_model(question, (found.structured_content or {})["hits"]))


asyncio.run(main("what causes high water"))
