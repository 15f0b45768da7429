"""The tools of the Python servers, made with the official SDK of either release."""

import base64
from typing import Annotated

from pydantic import BaseModel, Field

try:
    from mcp.server.mcpserver import Image, MCPServer as Server
except ModuleNotFoundError:
    # The name in release 1.
    from mcp.server.fastmcp import FastMCP as Server, Image

# The smallest PNG: one transparent pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


class Weather(BaseModel):
    """What the structured tool answers."""

    city: str
    celsius: float
    tags: list[str]


def server(name: str) -> Server:
    peer = Server(name, log_level="WARNING")

    @peer.tool()
    def add(a: int, b: int) -> int:
        """Adds two integers."""
        return a + b

    @peer.tool()
    def echo(message: Annotated[str, Field(description="What comes back")]) -> str:
        """Gives back the message."""
        return message

    @peer.tool()
    def image() -> Image:
        """Gives a picture of one pixel."""
        return Image(data=PIXEL, format="png")

    @peer.tool()
    def weather(city: str) -> Weather:
        """Gives a structured answer."""
        return Weather(city=city, celsius=21.5, tags=["dry", "windy"])

    @peer.tool()
    def fail(reason: str) -> str:
        """Fails with the given reason."""
        raise ValueError(reason)

    return peer
