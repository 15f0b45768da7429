"""A client made with the official Python SDK, release 1: the legacy era, over HTTP or stdio.

Reads where the gateway is from standard input and prints one report of everything it got.
"""

import asyncio
import json
import sys
import warnings
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client

SECONDS_MAX = 60

warnings.simplefilter("ignore", DeprecationWarning)


class Heard:
    """What the server says unasked."""

    def __init__(self):
        self.logs = []
        self.updated = asyncio.Queue()
        self.changed = asyncio.Event()

    async def log(self, params):
        self.logs.append(params.level)

    async def message(self, message):
        if not isinstance(message, types.ServerNotification):
            return
        notification = message.root
        if isinstance(notification, types.ResourceUpdatedNotification):
            self.updated.put_nowait(str(notification.params.uri))
        elif notification.method.endswith("/list_changed"):
            self.changed.set()


async def sample(_context, _params):
    text = types.TextContent(type="text", text="from the model")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def elicit(_context, _params):
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///here", name="here")])


@asynccontextmanager
async def connect(request):
    if request["transport"] == "stdio":
        program, *args = request["command"]
        async with stdio_client(StdioServerParameters(command=program, args=args)) as (read, write):
            yield read, write, lambda: None
    else:
        async with streamable_http_client(request["url"]) as streams:
            yield streams


async def code_of(call):
    try:
        await call
    except McpError as error:
        return error.error.code
    return None


async def every_page(ask, key):
    items, cursor = [], None
    while True:
        page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
        items += getattr(page, key)
        cursor = page.nextCursor
        if cursor is None:
            return items


async def until_listed(session, heard, ask, key, name):
    """Looks again whenever the server says that there is something new."""
    while True:
        heard.changed.clear()
        if name in [item.name for item in await every_page(ask, key)]:
            return True
        await heard.changed.wait()


async def cancel(session, tool):
    """Cancels a call that says it has begun."""
    begun = asyncio.Event()

    async def progress(_progress, _total, _message):
        begun.set()

    request_id = session._request_id
    call = asyncio.create_task(session.call_tool(tool, {}, progress_callback=progress))
    await begun.wait()
    params = types.CancelledNotificationParams(requestId=request_id, reason="enough")
    notification = types.CancelledNotification(params=params)
    await session.send_notification(types.ClientNotification(notification))
    call.cancel()
    return (await asyncio.gather(call, return_exceptions=True))[0].__class__.__name__


async def tools(session, report):
    report["tools"] = [tool.name for tool in await every_page(session.list_tools, "tools")]
    report["greet"] = (await session.call_tool("greet", {"name": "you"})).structuredContent
    report["echo"] = [
        (await session.call_tool(tool, {"n": 1})).structuredContent for tool in ("old_echo", "new_echo")
    ]
    report["failed"] = (await session.call_tool("old_fail", {})).isError
    report["refused"] = await code_of(session.call_tool("old_rpc_error", {}))
    report["unknown"] = await code_of(session.call_tool("nobody_has_it", {}))
    blocks = (await session.call_tool("old_every_content", {})).content
    report["blocks"] = [block.type for block in blocks]
    report["progress"] = []
    for tool in ("old_progress", "new_progress"):
        steps = []

        async def progress(progress, total, message, steps=steps):
            steps.append([progress, total, message])

        await session.call_tool(tool, {"steps": 3}, progress_callback=progress)
        report["progress"].append(steps)
    report["cancelled"] = [await cancel(session, tool) for tool in ("old_drip", "new_drip")]


async def prompts_and_resources(session, report):
    report["prompts"] = [it.name for it in await every_page(session.list_prompts, "prompts")]
    prompt = await session.get_prompt("old_prompt", {"name": "you"})
    report["prompt"] = prompt.messages[0].content.text
    resources = await every_page(session.list_resources, "resources")
    report["resources"] = [str(it.uri) for it in resources]
    templates = await every_page(session.list_resource_templates, "resourceTemplates")
    report["templates"] = [it.uriTemplate for it in templates]
    report["read"] = [
        (await session.read_resource(uri)).contents[0].text
        for uri in ("old://note", "new://note", "test://template/7/data")
    ]
    reference = types.PromptReference(type="ref/prompt", name="completable-prompt")
    argument = {"name": "department", "value": "E"}
    report["completion"] = (await session.complete(reference, argument)).completion.values


async def asked_back(session, heard, report):
    await session.set_logging_level("error")
    report["logs"] = []
    for tool in ("old_log", "new_log"):
        heard.logs.clear()
        await session.call_tool(tool, {})
        report["logs"].append(list(heard.logs))
    report["answers"] = {}
    for question in ("sample", "elicit", "roots"):
        report["answers"][question] = [
            (await session.call_tool(f"{server}_{question}", {})).structuredContent["result"]
            for server in ("old", "new")
        ]


async def changes(session, heard, report, registry):
    await session.call_tool("old_add_tool", {"name": "late_tool"})
    await session.call_tool("old_add_prompt", {"name": "late_prompt"})
    watch = (session, heard)
    report["changed"] = [
        await until_listed(*watch, session.list_tools, "tools", "late_tool"),
        await until_listed(*watch, session.list_prompts, "prompts", "late_prompt"),
    ]
    file = Path(registry)
    registered = json.loads(file.read_text())
    registered["tools"].append(dict(registered["tools"][0], name="late_greet"))
    file.write_text(json.dumps(registered))
    report["changed"].append(await until_listed(*watch, session.list_tools, "tools", "late_greet"))
    await session.subscribe_resource("old://note")
    await session.call_tool("old_update_resource", {"uri": "old://note"})
    report["updated"] = await heard.updated.get()
    await session.unsubscribe_resource("old://note")
    report["crash"] = (await session.call_tool("crash", {})).isError
    report["after"] = [
        (await session.call_tool(tool, {"n": 2})).structuredContent for tool in ("old_echo", "new_echo")
    ]


async def use(request, report):
    heard = Heard()
    async with connect(request) as (read, write, session_id):
        async with ClientSession(
            read,
            write,
            sampling_callback=sample,
            elicitation_callback=elicit,
            list_roots_callback=roots,
            logging_callback=heard.log,
            message_handler=heard.message,
        ) as session:
            hello = await session.initialize()
            report["version"] = hello.protocolVersion
            report["server"] = hello.serverInfo.name
            await tools(session, report)
            await prompts_and_resources(session, report)
            await asked_back(session, heard, report)
            await changes(session, heard, report, request["registry"])
            return session_id()


async def ended(url, session_id):
    """What a session answers that the SDK has ended with DELETE."""
    headers = {"Mcp-Session-Id": session_id, "Accept": "application/json, text/event-stream"}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with httpx.AsyncClient() as client:
        return (await client.post(url, json=ping, headers=headers)).status_code


async def main():
    request = json.load(sys.stdin)
    report = {}
    try:
        session_id = await asyncio.wait_for(use(request, report), SECONDS_MAX)
        report["ended"] = await ended(request["url"], session_id) if session_id else None
    finally:
        # Also after a failure: how far it came tells where to look.
        print(json.dumps(report))


asyncio.run(main())
