"""The tools of a Haft service as LangChain tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from ._client import AsyncHaft, Haft, text_of
from .models import ToolInfo


def langchain_tools(haft: Haft, names: Sequence[str] | None = None) -> list[BaseTool]:
    """The tools of a service, or those of these names, for code without asyncio."""

    def adapt(tool: ToolInfo) -> BaseTool:
        name = tool["name"]

        def run(**arguments: Any) -> str:
            return text_of(haft.call(name, arguments))

        return StructuredTool(
            name=name, description=tool["description"], args_schema=tool["input_schema"], func=run
        )

    return [adapt(tool) for tool in haft.tools() if names is None or tool["name"] in names]


async def async_langchain_tools(
    haft: AsyncHaft, names: Sequence[str] | None = None
) -> list[BaseTool]:
    """The same for asyncio."""

    def adapt(tool: ToolInfo) -> BaseTool:
        name = tool["name"]

        async def run(**arguments: Any) -> str:
            return text_of(await haft.call(name, arguments))

        return StructuredTool(
            name=name, description=tool["description"], args_schema=tool["input_schema"], coroutine=run
        )

    return [adapt(tool) for tool in await haft.tools() if names is None or tool["name"] in names]
