"""A client made with the official Python SDK, release 2, whose every request may arrive at another replica.

Reads the address, the key and the era from standard input and prints one report.
"""

import asyncio
import json
import sys
import warnings

import httpx2
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

SECONDS_MAX = 60
TIMES = 4

warnings.simplefilter("ignore")


async def sample(_context, _params):
    text = types.TextContent(type="text", text="from the model")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def elicit(_context, _params):
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///here", name="here")])


async def steps_of(client):
    steps = []

    async def progress(step, _total, _message):
        steps.append(step)

    await client.call_tool("progress", {"steps": 3}, progress_callback=progress)
    return len(steps)


async def cancelled(client):
    begun = asyncio.Event()

    async def progress(_progress, _total, _message):
        begun.set()

    call = asyncio.create_task(client.call_tool("drip", {}, progress_callback=progress))
    await begun.wait()
    call.cancel()
    return isinstance((await asyncio.gather(call, return_exceptions=True))[0], asyncio.CancelledError)


async def use(request, report, http):
    async with Client(
        streamable_http_client(request["url"], http_client=http),
        # A pinned version would skip the discovery.
        mode="auto" if request["era"] == "modern" else "legacy",
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
    ) as client:
        report["version"] = client.protocol_version
        for n in range(TIMES):
            await client.list_tools()
            report["echo"].append((await client.call_tool("echo", {"n": n})).structured_content)
            for question, answers in report["answers"].items():
                answers.append((await client.call_tool(question, {})).structured_content["result"])
            report["steps"].append(await steps_of(client))
            report["cancelled"] += await cancelled(client)


async def main():
    request = json.load(sys.stdin)
    report = {"echo": [], "answers": {"sample": [], "elicit": [], "roots": []}, "steps": [], "cancelled": 0}
    headers = {"X-API-Key": request["key"]}
    try:
        async with httpx2.AsyncClient(headers=headers, timeout=SECONDS_MAX) as http:
            await asyncio.wait_for(use(request, report, http), SECONDS_MAX)
    finally:
        # Also after a failure: how far it came tells where to look.
        print(json.dumps(report))


asyncio.run(main())
