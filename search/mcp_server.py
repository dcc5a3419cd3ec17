"""The server of the MCP tools: the SDK's, which drops unknown arguments and leaves some messages without an answer."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import anyio
from mcp import types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from indexer.sources.repeated_members import repeated_member

_REPEATED = "repeated member"


class StrictServer(MCPServer[Any]):
    """Refuses arguments that a tool does not have, and answers messages that are not JSON-RPC."""

    async def list_tools(self) -> list[types.Tool]:
        tools = await super().list_tools()
        return [
            tool.model_copy(update={"input_schema": {**tool.input_schema, "additionalProperties": False}})
            for tool in tools
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> types.CallToolResult | types.InputRequiredResult:
        schemas = {tool.name: tool.input_schema.get("properties", {}) for tool in await super().list_tools()}
        known = schemas.get(name, {})
        if name in schemas:
            _refuse_unknown(name, arguments, known)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if hasattr(error.__cause__, "errors"):  # pydantic's error
                raise ToolError(f"{name}: {_described(error.__cause__, known)}") from None
            raise

    async def run_stdio_async(self) -> None:
        """Answer a client on standard input and output until it leaves."""
        with _input_lines() as lines:
            await self._answer_lines(lines)

    async def _answer_lines(self, lines: Any) -> None:
        async with stdio_server(lines) as (read, write), anyio.create_task_group() as group:
            send, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

            async def pass_on() -> None:
                async with send:
                    async for message in read:
                        if isinstance(message, SessionMessage):
                            await send.send(message)
                        else:
                            await write.send(SessionMessage(_answer_to(message)))

            group.start_soon(pass_on)
            options = self._lowlevel_server.create_initialization_options()
            await self._lowlevel_server.run(messages, write, options)
            group.cancel_scope.cancel()


class _CheckedLines:
    """The lines of standard input. A message with a repeated member, or with an id that nobody could answer,
    becomes a message that is refused."""

    def __init__(self, lines: anyio.AsyncFile[str]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            asked: Any = None
            with suppress(ValueError, RecursionError):
                asked = json.loads(line)
            repeated, id_ = repeated_member(line), asked.get("id") if isinstance(asked, dict) else None
            # The SDK reads a request with another id as a notification, which nobody answers.
            is_lost = isinstance(asked, dict) and {"id", "method"} <= asked.keys() and type(id_) not in (int, str)
            yield json.dumps({"id": id_, _REPEATED: repeated}) if repeated is not None or is_lost else line


@contextmanager
def _input_lines() -> Iterator[_CheckedLines]:
    """Give the lines of standard input. Until the end, others who read from standard input find nothing there."""
    wire = os.dup(0)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    try:
        with os.fdopen(wire, encoding="utf-8", errors="replace", closefd=False) as lines:
            yield _CheckedLines(anyio.wrap_file(lines))
    finally:
        os.dup2(wire, 0)
        os.close(wire)


def _refuse_unknown(tool: str, arguments: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise ToolError for an argument that a tool does not have: dropping a misspelt filter would search everything."""
    for name in arguments.keys() - known.keys():
        near = difflib.get_close_matches(name[:100], known, n=1)
        if name in ("filter", "filters", "condition") and "where" in known:
            near = ["where"]
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        hint = f'write "{near[0]}"; ' if near else ""
        raise ToolError(f"{tool} has no argument {name[:100]!r}: {hint}{takes}")


def _described(error: Any, known: Mapping[str, Any]) -> str:
    """Return the first mistake in the arguments of a tool, with the schema that the argument must have."""
    mistake = error.errors(include_url=False, include_input=False, include_context=False)[0]
    argument = str(mistake["loc"][0])
    if mistake["type"] == "missing":
        return f"give the argument {argument!r}"
    shape = {name: value for name, value in known.get(argument, {}).items() if name not in ("title", "description")}
    return f"the argument {argument!r} does not fit its schema: {json.dumps(shape)}"


def _can_be_written(id_: object) -> bool:
    """Return whether an answer can repeat this id: text with half of a surrogate pair cannot be written."""
    try:
        return type(id_) in (int, str) and bool(str(id_).encode())
    except ValueError:
        return False


def _answer_to(error: Exception) -> types.JSONRPCError:
    """Return the answer to a line that is not a message, with the id of the line if it has one."""
    line = error.errors()[0].get("input") if hasattr(error, "errors") else None  # the SDK gives pydantic's error
    try:
        message = json.loads(line) if isinstance(line, str) else line
    except (ValueError, RecursionError):  # of brackets within brackets
        detail = types.ErrorData(code=types.PARSE_ERROR, message="this line is not JSON: send one message per line")
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=detail)
    asked = message.get("id") if isinstance(message, dict) else None
    id_ = asked if _can_be_written(asked) else None
    wrong = "this line is not a JSON-RPC 2.0 message: give jsonrpc, method, and an id that is a text or a whole number"
    if isinstance(message, dict) and message.get(_REPEATED) is not None:
        wrong = f"the member {message[_REPEATED]!r} is given twice: give it once"
    if isinstance(line, str):  # Python reads it, and the SDK does not
        wrong = "this message is not valid Unicode: it contains half of a surrogate pair"
    return types.JSONRPCError(jsonrpc="2.0", id=id_, error=types.ErrorData(code=types.INVALID_REQUEST, message=wrong))
