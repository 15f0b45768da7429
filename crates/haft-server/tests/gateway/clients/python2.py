"""A client made with the official Python SDK, release 2: both eras, over HTTP or stdio.

Reads where the gateway is, and the era, from standard input and prints one report of everything it got.
"""

import asyncio
import json
import sys
import warnings
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp import MCPError, StdioServerParameters, types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated

SECONDS_MAX = 60

warnings.simplefilter("ignore")


class Heard:
    """What the server says unasked."""

    def __init__(self):
        self.logs = []
        self.updated = asyncio.Queue()
        self.changed = asyncio.Event()

    async def log(self, params):
        self.logs.append(params.level)

    async def message(self, message):
        method = getattr(message, "method", "")
        if method == "notifications/resources/updated":
            self.updated.put_nowait(str(message.params.uri))
        elif method.endswith("/list_changed"):
            self.changed.set()

    async def follow(self, subscription):
        async for event in subscription:
            if isinstance(event, ResourceUpdated):
                self.updated.put_nowait(str(event.uri))
            else:
                self.changed.set()


async def sample(_context, _params):
    text = types.TextContent(type="text", text="from the model")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def elicit(_context, _params):
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///here", name="here")])


async def code_of(call):
    try:
        await call
    except MCPError as error:
        return error.error.code
    return None


async def every_page(ask, key):
    items, cursor = [], None
    while True:
        page = await ask(cursor=cursor)
        items += getattr(page, key)
        cursor = page.next_cursor
        if cursor is None:
            return items


async def until_listed(heard, ask, key, name):
    """Looks again whenever the server says that there is something new."""
    while True:
        heard.changed.clear()
        if name in [item.name for item in await every_page(ask, key)]:
            return True
        await heard.changed.wait()


async def cancel(client, tool):
    """Cancels a call that says it has begun. The SDK tells the server, in whatever way the era has."""
    begun = asyncio.Event()

    async def progress(_progress, _total, _message):
        begun.set()

    call = asyncio.create_task(client.call_tool(tool, {}, progress_callback=progress))
    await begun.wait()
    call.cancel()
    return (await asyncio.gather(call, return_exceptions=True))[0].__class__.__name__


async def tools(client, report):
    report["tools"] = [tool.name for tool in await every_page(client.list_tools, "tools")]
    report["greet"] = (await client.call_tool("greet", {"name": "you"})).structured_content
    report["echo"] = [
        (await client.call_tool(tool, {"n": 1})).structured_content for tool in ("old_echo", "new_echo")
    ]
    report["failed"] = (await client.call_tool("old_fail", {})).is_error
    report["refused"] = await code_of(client.call_tool("old_rpc_error", {}))
    report["unknown"] = await code_of(client.call_tool("nobody_has_it", {}))
    blocks = (await client.call_tool("old_every_content", {})).content
    report["blocks"] = [block.type for block in blocks]
    report["progress"] = []
    for tool in ("old_progress", "new_progress"):
        steps = []

        async def progress(progress, total, message, steps=steps):
            steps.append([progress, total, message])

        await client.call_tool(tool, {"steps": 3}, progress_callback=progress)
        report["progress"].append(steps)
    report["cancelled"] = [await cancel(client, tool) for tool in ("old_drip", "new_drip")]


async def prompts_and_resources(client, report):
    report["prompts"] = [it.name for it in await every_page(client.list_prompts, "prompts")]
    prompt = await client.get_prompt("old_prompt", {"name": "you"})
    report["prompt"] = prompt.messages[0].content.text
    resources = await every_page(client.list_resources, "resources")
    report["resources"] = [str(it.uri) for it in resources]
    templates = await every_page(client.list_resource_templates, "resource_templates")
    report["templates"] = [it.uri_template for it in templates]
    report["read"] = [
        (await client.read_resource(uri)).contents[0].text
        for uri in ("old://note", "new://note", "test://template/7/data")
    ]
    reference = types.PromptReference(type="ref/prompt", name="completable-prompt")
    argument = {"name": "department", "value": "E"}
    report["completion"] = (await client.complete(reference, argument)).completion.values


async def asked_back(client, heard, report, is_modern):
    if not is_modern:
        await client.set_logging_level("error")
    report["logs"] = []
    for tool in ("old_log", "new_log"):
        heard.logs.clear()
        await client.call_tool(tool, {})
        report["logs"].append(list(heard.logs))
    report["answers"] = {}
    for question in ("sample", "elicit", "roots"):
        report["answers"][question] = [
            (await client.call_tool(f"{server}_{question}", {})).structured_content["result"]
            for server in ("old", "new")
        ]


@asynccontextmanager
async def following(client, heard, is_modern):
    """Hears of changes, in whatever way the era has."""
    if not is_modern:
        await client.subscribe_resource("old://note")
        yield
        await client.unsubscribe_resource("old://note")
        return
    async with client.listen(
        tools_list_changed=True, prompts_list_changed=True, resource_subscriptions=["old://note"]
    ) as subscription:
        follower = asyncio.create_task(heard.follow(subscription))
        yield
        follower.cancel()


async def changes(client, heard, report, request, is_modern):
    async with following(client, heard, is_modern):
        await client.call_tool("old_add_tool", {"name": "late_tool"})
        await client.call_tool("old_add_prompt", {"name": "late_prompt"})
        report["changed"] = [
            await until_listed(heard, client.list_tools, "tools", "late_tool"),
            await until_listed(heard, client.list_prompts, "prompts", "late_prompt"),
        ]
        file = Path(request["registry"])
        registered = json.loads(file.read_text())
        registered["tools"].append(dict(registered["tools"][0], name="late_greet"))
        file.write_text(json.dumps(registered))
        report["changed"].append(await until_listed(heard, client.list_tools, "tools", "late_greet"))
        await client.call_tool("old_update_resource", {"uri": "old://note"})
        report["updated"] = await heard.updated.get()
    report["crash"] = (await client.call_tool("crash", {})).is_error
    report["after"] = [
        (await client.call_tool(tool, {"n": 2})).structured_content for tool in ("old_echo", "new_echo")
    ]


async def use(request, report, http):
    heard = Heard()
    is_modern = request["era"] == "modern"
    if request["transport"] == "stdio":
        program, *args = request["command"]
        target = StdioServerParameters(command=program, args=args)
    else:
        target = streamable_http_client(request["url"], http_client=http)
    async with Client(
        target,
        # A pinned version would skip the discovery.
        mode="auto" if is_modern else "legacy",
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
        logging_callback=heard.log,
        log_level="error" if is_modern else None,
        message_handler=heard.message,
    ) as client:
        report["version"] = client.protocol_version
        report["server"] = client.server_info.name
        await tools(client, report)
        await prompts_and_resources(client, report)
        await asked_back(client, heard, report, is_modern)
        await changes(client, heard, report, request, is_modern)


async def ended(url, session_id):
    """What a session answers that the SDK has ended with DELETE."""
    headers = {"Mcp-Session-Id": session_id, "Accept": "application/json, text/event-stream"}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with httpx2.AsyncClient() as client:
        return (await client.post(url, json=ping, headers=headers)).status_code


async def main():
    request = json.load(sys.stdin)
    report, sessions = {}, set()

    async def note_session(response):
        sessions.update(response.headers.get_list("mcp-session-id"))

    hooks = {"response": [note_session]}
    try:
        async with httpx2.AsyncClient(event_hooks=hooks, timeout=SECONDS_MAX) as http:
            await asyncio.wait_for(use(request, report, http), SECONDS_MAX)
        report["sessions"] = len(sessions)
        report["ended"] = [await ended(request["url"], session_id) for session_id in sessions]
    finally:
        # Also after a failure: how far it came tells where to look.
        print(json.dumps(report))


asyncio.run(main())
