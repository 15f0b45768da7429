"""The tools of a Haft service for the OpenAI Agents SDK."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from ._client import AsyncHaft, text_of
from .models import ToolInfo


async def agent_tools(haft: AsyncHaft, names: Sequence[str] | None = None) -> list[FunctionTool]:
    """The tools of a service, or those of these names."""

    def adapt(tool: ToolInfo) -> FunctionTool:
        name = tool["name"]

        async def run(context: ToolContext[Any], arguments: str) -> str:
            try:
                values = json.loads(arguments or "{}")
            except ValueError as error:
                return f"ValidationError: the arguments are not JSON: {error}"
            return text_of(await haft.call(name, values))

        return FunctionTool(
            name=name,
            description=tool["description"],
            params_json_schema=tool["input_schema"],
            on_invoke_tool=run,
            # The schemas of servers need not have the form that strict mode requires.
            strict_json_schema=False,
        )

    return [adapt(tool) for tool in await haft.tools() if names is None or tool["name"] in names]
