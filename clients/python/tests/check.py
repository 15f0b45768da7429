"""Uses the client against a running service: HAFT_URL and HAFT_KEY name it.

The service has the tools `greet` (returns a greeting), `fail` and `echo` (needs an approval), and the key is an
admin key. Its model calls `echo` in every turn and then says "Sunny.".
"""

import asyncio

import haft_client
from haft_client import AsyncHaft, Haft, HaftError, ToolError
from haft_client.langchain import async_langchain_tools, langchain_tools
from haft_client.openai_agents import agent_tools


def check_sync() -> None:
    with Haft() as haft:
        names = [tool["name"] for tool in haft.tools()]
        assert {"greet", "fail", "echo"} <= set(names), names
        assert haft.tool("greet")["input_schema"]["required"] == ["name"]
        envelope = haft.call("greet", {"name": "Ada"}, session="s", request="greet Ada")
        assert envelope["data"] == {"greeting": "Hello, Ada!"}, envelope
        failed = haft.call("fail")
        assert failed["status"] == "error", failed
        for tool, code in [("fail", "ToolExecutionError"), ("missing", "UnknownTool")]:
            try:
                haft.call(tool, check=True)
            except ToolError as error:
                assert error.code == code, error
            else:
                raise AssertionError(tool)
        results = haft.calls([("greet", {"name": "A"}), ("greet", {"name": "B"})])
        assert [it["data"]["greeting"] for it in results] == ["Hello, A!", "Hello, B!"], results
        assert haft.call("echo", {"b": 1}, approved=True)["data"] == {"b": 1}
        assert haft.search("greet a person by name")
        try:
            haft.tool("missing")
        except HaftError as error:
            assert error.status == 404 and error.problem["docs"] == "/api/docs", error.problem
        else:
            raise AssertionError("a missing tool was found")
        source = 'def run(word: str):\n    """Shouts."""\n    return word.upper()\n'
        entry = {"name": "shout", "type": "local", "config": {"source": source}}
        assert haft.register(entry)["tool"]["description"] == "Shouts."
        assert haft.call("shout", {"word": "hey"})["data"] == "HEY"
        haft.remove("shout")
        events = []
        for event in haft.run("what is the weather in Oslo?"):
            events.append(event["type"])
            if event["type"] == "question.asked":
                (item,) = haft.inbox()
                assert (item["kind"], item["arguments"]) == ("approval", {"city": "Oslo"}), item
                haft.answer(item["id"], "allow")
        assert events[0] == "turn.started" and "tool.completed" in events, events
        assert event["type"] == "turn.completed" and event["text"] == "Sunny.", event
        (greet,) = langchain_tools(haft, ["greet"])
        assert "Hello, Lin!" in greet.invoke({"name": "Lin"})


async def check_async() -> None:
    async with AsyncHaft() as haft:
        assert (await haft.call("greet", {"name": "Bo"}))["data"] == {"greeting": "Hello, Bo!"}
        (greet,) = await async_langchain_tools(haft, ["greet"])
        assert "Hello, Mo!" in await greet.ainvoke({"name": "Mo"})
        (fail,) = await async_langchain_tools(haft, ["fail"])
        assert (await fail.ainvoke({})).startswith("ToolExecutionError: ")
        async for event in haft.run("and now?"):
            if event["type"] == "question.asked":
                await haft.answer(event["item"]["id"], "deny")
        assert event["type"] == "turn.completed" and await haft.inbox() == [], event
        (tool,) = await agent_tools(haft, ["greet"])
        assert tool.params_json_schema["required"] == ["name"]
        text = await tool.on_invoke_tool(None, '{"name": "Ola"}')  # type: ignore[arg-type]
        assert "Hello, Ola!" in text, text
        assert (await tool.on_invoke_tool(None, "{")).startswith("ValidationError")  # type: ignore[arg-type]


check_sync()
asyncio.run(check_async())
print(f"haft_client {haft_client.__name__}: checked")
