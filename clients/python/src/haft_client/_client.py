"""The client, for code with and without asyncio. Both build the same requests."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, cast
from urllib.parse import quote

import httpx

from ._errors import HaftError, ToolError
from .models import Envelope, InboxItem, Problem, ToolInfo

STREAM = {"accept": "text/event-stream"}
DEFAULT_URL = "http://127.0.0.1:7300"
# Longer than most tools take: the limits of the service end a call first.
TIMEOUT = httpx.Timeout(10.0, read=600.0)
# Statuses with which a call is answered by an envelope.
CALL_STATUSES = frozenset({200, 403, 404, 422, 502, 503, 504})


def _settings(url: str | None, api_key: str | None) -> dict[str, Any]:
    url = url or os.environ.get("HAFT_URL") or DEFAULT_URL
    api_key = api_key or os.environ.get("HAFT_KEY") or os.environ.get("HAFT_API_KEY")
    headers = {"accept": "application/json"}
    if api_key:
        headers["x-api-key"] = api_key
    return {"base_url": url, "headers": headers, "timeout": TIMEOUT}


def _tool_path(name: str, rest: str = "") -> str:
    return f"/api/v1/tools/{quote(name, safe='')}{rest}"


def _call_body(
    arguments: Mapping[str, Any] | None, session: str | None, request: str | None, approved: bool
) -> dict[str, Any]:
    body: dict[str, Any] = {"arguments": dict(arguments or {})}
    if session is not None:
        body["session"] = session
    if request is not None:
        body["request"] = request
    if approved:
        body["approved"] = True
    return body


def _answer(response: httpx.Response) -> Any:
    if response.is_success:
        return response.json() if response.content else None
    raise _error(response)


def _error(response: httpx.Response) -> HaftError:
    try:
        problem = cast(Problem, response.json())
    except ValueError:
        problem = cast(Problem, {"status": response.status_code, "detail": response.text})
    return HaftError(response.status_code, problem)


def _envelope(response: httpx.Response, check: bool) -> Envelope:
    try:
        body = response.json()
    except ValueError:
        raise _error(response) from None
    if response.status_code not in CALL_STATUSES or "execution_id" not in body:
        raise _error(response)
    envelope = cast(Envelope, body)
    if check and envelope["status"] == "error":
        raise ToolError(envelope)
    return envelope


def text_of(envelope: Envelope) -> str:
    """The text of a result for a model: of an error its code and message."""
    error = envelope.get("error")
    if error:
        return f"{error['code']}: {error['message']}"
    return "\n".join(_block_text(block) for block in envelope["content"]) or "(no content)"


def _block_text(block: Mapping[str, Any]) -> str:
    resource = block.get("resource") or {}
    return str(block.get("text") or resource.get("text") or f"({block.get('type', 'content')})")


def _run_body(input: str, session: str | None, system: str | None, approved: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"input": input}
    if session is not None:
        body["session"] = session
    if system is not None:
        body["system"] = system
    if approved:
        body["approved"] = True
    return body


def _event(line: str) -> dict[str, Any] | None:
    """The event of one line of a stream, if the line has one."""
    if not line.startswith("data:"):
        return None
    event = json.loads(line[len("data:") :])
    return event if isinstance(event, dict) else None


def _answer_body(answer: Any, refuse: bool, reason: str | None) -> dict[str, Any]:
    if not refuse:
        return {"answer": answer}
    return {"refuse": True, "reason": reason} if reason else {"refuse": True}


class Haft:
    """A running `haft serve`."""

    def __init__(self, url: str | None = None, api_key: str | None = None) -> None:
        self._http = httpx.Client(**_settings(url, api_key))

    def tools(self, query: str | None = None) -> list[ToolInfo]:
        """Lists the tools; `query` filters by text."""
        params = {"q": query} if query else {}
        return cast("list[ToolInfo]", _answer(self._http.get("/api/v1/tools", params=params))["tools"])

    def tool(self, name: str) -> ToolInfo:
        """One tool: schemas, settings and their origins."""
        return cast(ToolInfo, _answer(self._http.get(_tool_path(name))))

    def search(self, request: str) -> dict[str, Any]:
        """Ranks the tools for a request in plain words."""
        return cast("dict[str, Any]", _answer(self._http.get("/api/v1/tools/search", params={"q": request})))

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        session: str | None = None,
        request: str | None = None,
        approved: bool = False,
        check: bool = False,
    ) -> Envelope:
        """Calls a tool. With `check` a failed call raises `ToolError`."""
        body = _call_body(arguments, session, request, approved)
        return _envelope(self._http.post(_tool_path(tool, "/call"), json=body), check)

    def calls(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Envelope]:
        """Runs several calls, at the same time where their tools allow it."""
        body = {"calls": [{"tool": tool, "arguments": dict(args)} for tool, args in calls]}
        return cast("list[Envelope]", _answer(self._http.post("/api/v1/calls", json=body))["results"])

    def register(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Registers a local tool, an entry of `tools.json`. It takes an admin key."""
        return cast("dict[str, Any]", _answer(self._http.post("/api/v1/tools", json=dict(entry))))

    def remove(self, name: str) -> None:
        """Removes a registered tool."""
        _answer(self._http.delete(_tool_path(name)))

    def run(
        self,
        input: str,
        *,
        session: str | None = None,
        system: str | None = None,
        approved: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Lets the agent of the service answer, and yields its events. The last one is `turn.completed` or
        `turn.failed`."""
        body = _run_body(input, session, system, approved)
        with self._http.stream("POST", "/api/v1/runs", json=body, headers=STREAM) as response:
            if not response.is_success:
                response.read()
                raise _error(response)
            for line in response.iter_lines():
                if event := _event(line):
                    yield event

    def inbox(self) -> list[InboxItem]:
        """Lists the open questions, the oldest first."""
        return cast("list[InboxItem]", _answer(self._http.get("/api/v1/inbox"))["items"])

    def answer(
        self, question: str, answer: Any = None, *, refuse: bool = False, reason: str | None = None
    ) -> None:
        """Answers a question of the inbox by its id, or refuses it."""
        body = _answer_body(answer, refuse, reason)
        _answer(self._http.post(f"/api/v1/inbox/{quote(question, safe='')}", json=body))

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Haft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncHaft:
    """A running `haft serve`, for asyncio."""

    def __init__(self, url: str | None = None, api_key: str | None = None) -> None:
        self._http = httpx.AsyncClient(**_settings(url, api_key))

    async def tools(self, query: str | None = None) -> list[ToolInfo]:
        """Lists the tools; `query` filters by text."""
        params = {"q": query} if query else {}
        answer = _answer(await self._http.get("/api/v1/tools", params=params))
        return cast("list[ToolInfo]", answer["tools"])

    async def tool(self, name: str) -> ToolInfo:
        """One tool: schemas, settings and their origins."""
        return cast(ToolInfo, _answer(await self._http.get(_tool_path(name))))

    async def search(self, request: str) -> dict[str, Any]:
        """Ranks the tools for a request in plain words."""
        answer = await self._http.get("/api/v1/tools/search", params={"q": request})
        return cast("dict[str, Any]", _answer(answer))

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        session: str | None = None,
        request: str | None = None,
        approved: bool = False,
        check: bool = False,
    ) -> Envelope:
        """Calls a tool. With `check` a failed call raises `ToolError`."""
        body = _call_body(arguments, session, request, approved)
        return _envelope(await self._http.post(_tool_path(tool, "/call"), json=body), check)

    async def calls(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Envelope]:
        """Runs several calls, at the same time where their tools allow it."""
        body = {"calls": [{"tool": tool, "arguments": dict(args)} for tool, args in calls]}
        answer = _answer(await self._http.post("/api/v1/calls", json=body))
        return cast("list[Envelope]", answer["results"])

    async def register(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Registers a local tool, an entry of `tools.json`. It takes an admin key."""
        answer = await self._http.post("/api/v1/tools", json=dict(entry))
        return cast("dict[str, Any]", _answer(answer))

    async def remove(self, name: str) -> None:
        """Removes a registered tool."""
        _answer(await self._http.delete(_tool_path(name)))

    async def run(
        self,
        input: str,
        *,
        session: str | None = None,
        system: str | None = None,
        approved: bool = False,
    ) -> AsyncIterator[dict[str, Any]]:
        """Lets the agent of the service answer, and yields its events. The last one is `turn.completed` or
        `turn.failed`."""
        body = _run_body(input, session, system, approved)
        async with self._http.stream("POST", "/api/v1/runs", json=body, headers=STREAM) as response:
            if not response.is_success:
                await response.aread()
                raise _error(response)
            async for line in response.aiter_lines():
                if event := _event(line):
                    yield event

    async def inbox(self) -> list[InboxItem]:
        """Lists the open questions, the oldest first."""
        return cast("list[InboxItem]", _answer(await self._http.get("/api/v1/inbox"))["items"])

    async def answer(
        self, question: str, answer: Any = None, *, refuse: bool = False, reason: str | None = None
    ) -> None:
        """Answers a question of the inbox by its id, or refuses it."""
        body = _answer_body(answer, refuse, reason)
        path = f"/api/v1/inbox/{quote(question, safe='')}"
        _answer(await self._http.post(path, json=body))

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncHaft:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
