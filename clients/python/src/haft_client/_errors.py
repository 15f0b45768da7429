"""Errors of the service and of its tools."""

from __future__ import annotations

from .models import Envelope, Problem


class HaftError(Exception):
    """The service refused a request."""

    def __init__(self, status: int, problem: Problem) -> None:
        self.status = status
        self.problem = problem
        self.code = problem.get("code", "")
        self.remedy = problem.get("remedy")
        text = problem.get("detail") or problem.get("title") or f"status {status}"
        super().__init__(f"{text}; {self.remedy}" if self.remedy else text)


class ToolError(Exception):
    """A call failed. `envelope` holds everything that is known about it."""

    def __init__(self, envelope: Envelope) -> None:
        error = envelope.get("error")
        self.envelope = envelope
        self.code = str(error["code"]) if error else ""
        self.message = error["message"] if error else ""
        self.remedy = error.get("remedy") if error else None
        super().__init__(f"{self.code}: {self.message}")
