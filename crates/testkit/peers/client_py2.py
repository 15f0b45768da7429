"""The reference client of both eras: the official Python SDK, release 2.

Reads the same request as client_py1.py, with "era": "legacy"|"modern" and without "ws", which
release 2 does not have.
"""

import asyncio
import json
import sys
import warnings

from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.client.sse import sse_client

PAGES_MAX = 100
SECONDS_MAX = 30
MODERN = "2026-07-28"

warnings.simplefilter("ignore")


def target(request):
    if request["transport"] == "stdio":
        program, *args = request["command"]
        return StdioServerParameters(command=program, args=args, env=request["env"])
    if request["transport"] == "http":
        return request["url"]
    if request["transport"] == "sse":
        return sse_client(request["url"])
    sys.exit("release 2 of the Python SDK has no WebSocket: use release 1")


def wire(model):
    # Only what the server sent: no defaults of the SDK.
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def call(client, name, arguments):
    try:
        return {"result": wire(await client.call_tool(name, arguments))}
    except MCPError as error:
        return {"error": wire(error.error)}
    except RuntimeError as error:
        # The SDK refuses structured content that does not fit the tool's output schema.
        return {"refused": str(error)}


async def main():
    request = json.load(sys.stdin)
    # A pinned version would skip the discovery, and with it what the server says of itself.
    mode = "auto" if request["era"] == "modern" else "legacy"
    async with Client(target(request), mode=mode) as client:
        if mode == "auto" and client.protocol_version != MODERN:
            sys.exit(f"the server speaks {client.protocol_version} and not {MODERN}")
        tools, cursor = [], None
        for _ in range(PAGES_MAX):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        results = [await call(client, it["name"], it["arguments"]) for it in request["calls"]]
        seen = {
            "protocolVersion": client.protocol_version,
            "serverInfo": wire(client.server_info) if client.server_info else None,
            "capabilities": wire(client.server_capabilities),
            "tools": [wire(tool) for tool in tools],
            "results": results,
        }
    print(json.dumps(seen, ensure_ascii=False))


asyncio.run(asyncio.wait_for(main(), SECONDS_MAX))
