"""A server over WebSocket (/ws), HTTP+SSE (/sse) or streamable HTTP (/mcp), made with the official SDK.

Arguments: websocket|sse|streamable-http PORT
"""

import sys
import warnings

import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

from tools import server


class WebSocketApp:
    def __init__(self, peer):
        self.peer = peer

    async def __call__(self, scope, receive, send):
        from mcp.server.websocket import websocket_server

        # The SDK offers the transport to its low-level server only.
        lowlevel = self.peer._mcp_server
        async with websocket_server(scope, receive, send) as (read, write):
            await lowlevel.run(read, write, lowlevel.create_initialization_options())


def main():
    transport, port = sys.argv[1], int(sys.argv[2])
    peer = server(f"python-{transport}")
    if transport == "websocket":
        warnings.simplefilter("ignore", DeprecationWarning)
        app = Starlette(routes=[WebSocketRoute("/ws", WebSocketApp(peer))])
    elif transport == "sse":
        app = peer.sse_app()
    elif transport == "streamable-http":
        app = peer.streamable_http_app()
    else:
        sys.exit(f"unknown transport {transport}: websocket, sse or streamable-http")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


main()
