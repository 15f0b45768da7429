"""The reference client of the legacy era: the official Python SDK, release 1.

Reads one request from standard input and prints what the SDK's client got. The request:
{"transport": "stdio"|"http"|"sse"|"ws", "command": [...], "env": {...}, "url": "...",
 "calls": [{"name": "...", "arguments": {...}}]}
"""

import asyncio
import json
import sys
import warnings
from contextlib import asynccontextmanager

from mcp import ClientSession, McpError, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.websocket import websocket_client

PAGES_MAX = 100
SECONDS_MAX = 30

warnings.simplefilter("ignore", DeprecationWarning)


@asynccontextmanager
async def connect(request):
    if request["transport"] == "stdio":
        program, *args = request["command"]
        parameters = StdioServerParameters(command=program, args=args, env=request["env"])
        async with stdio_client(parameters) as streams:
            yield streams
    elif request["transport"] == "http":
        async with streamable_http_client(request["url"]) as (read, write, *_):
            yield read, write
    elif request["transport"] == "sse":
        async with sse_client(request["url"]) as streams:
            yield streams
    else:
        async with websocket_client(request["url"]) as streams:
            yield streams


def wire(model):
    # Only what the server sent: no defaults of the SDK.
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def call(session, name, arguments):
    try:
        return {"result": wire(await session.call_tool(name, arguments))}
    except McpError as error:
        return {"error": wire(error.error)}
    except RuntimeError as error:
        # The SDK refuses structured content that does not fit the tool's output schema.
        return {"refused": str(error)}


async def main():
    request = json.load(sys.stdin)
    async with connect(request) as (read, write), ClientSession(read, write) as session:
        initialized = await session.initialize()
        tools, cursor = [], None
        for _ in range(PAGES_MAX):
            page = await session.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.nextCursor
            if cursor is None:
                break
        results = [await call(session, it["name"], it["arguments"]) for it in request["calls"]]
        seen = {
            "protocolVersion": initialized.protocolVersion,
            "serverInfo": wire(initialized.serverInfo),
            "capabilities": wire(initialized.capabilities),
            "tools": [wire(tool) for tool in tools],
            "results": results,
        }
    print(json.dumps(seen, ensure_ascii=False))


asyncio.run(asyncio.wait_for(main(), SECONDS_MAX))
