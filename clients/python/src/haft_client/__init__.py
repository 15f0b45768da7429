"""Client of the HTTP API of Haft."""

from ._client import AsyncHaft, Haft
from ._errors import HaftError, ToolError

__all__ = ["AsyncHaft", "Haft", "HaftError", "ToolError"]
