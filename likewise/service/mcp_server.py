"""The server of the MCP tools. The SDK's server drops unknown arguments; this one refuses them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, get_args

from mcp import types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata


class _TextsStayTexts(FuncMetadata):
    """Reads JSON in a text only for a list, which some clients send as text. The SDK would also take the filter "null"
    for no filter."""

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        fields = self.arg_model.model_fields
        lists = {name: value for name, value in data.items() if list[str] in get_args(fields[name].annotation)}
        return data | super().pre_parse_json(lists)


class StrictServer(MCPServer[Any]):
    """Refuses arguments that a tool does not have, and describes those of the wrong type."""

    def add_tool(self, *arguments: Any, **options: Any) -> None:
        tool = self._tool_manager.add_tool(*arguments, **options)
        tool.fn_metadata = _TextsStayTexts(**dict(tool.fn_metadata))

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
