"""The audit of calls: one log line for each call of a tool, also for a call that is refused."""

import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext

from gamelake.model.logs import event_logger

_Context = ServerRequestContext[Any, Any]
_TOOL_CALLS = "tools/call"
_LONGEST = 2_000

log = event_logger(__name__)


class CallOutcome(StrEnum):
    """The outcome of a call."""

    ANSWERED = "answered"
    CUT = "cut"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(slots=True)
class AgentCall:
    """A call of a tool, as its line in the log has it.

    Attributes:
        statements: those that went to Trino, or the one that was refused.
        query_ids: by which Trino's audit knows the queries.
    """

    tool: str
    outcome: CallOutcome = CallOutcome.REFUSED
    statements: list[str] = field(default_factory=list)
    query_ids: list[str] = field(default_factory=list)
    rows: int = 0
    error: str = ""


_current: ContextVar[AgentCall] = ContextVar("agent_call")


def current_call() -> AgentCall:
    """Return the call that is being answered."""
    return _current.get()


class CallAudit:
    """Logs each call of a tool with the user, the masked statement, rows, seconds and outcome."""

    def __init__(self, user: str, mask: Callable[[str], str]) -> None:
        self._user = user
        self._mask = mask

    async def __call__(self, ctx: _Context, call_next: Callable[[_Context], Awaitable[HandlerResult]]) -> HandlerResult:
        """Answer a request of the protocol; a call of a tool is logged when it has ended."""
        if ctx.method != _TOOL_CALLS:
            return await call_next(ctx)
        named = (ctx.params or {}).get("name", "")
        call, began = AgentCall(str(named)), time.monotonic()
        token = _current.set(call)
        try:
            return await call_next(ctx)
        finally:
            _current.reset(token)
            self._log(call, time.monotonic() - began)

    def _log(self, call: AgentCall, seconds: float) -> None:
        log.info(
            "agent_called",
            user=self._user,
            tool=call.tool[:_LONGEST],
            outcome=call.outcome,
            rows=call.rows,
            seconds=round(seconds, 3),
            query_ids=call.query_ids,
            statements=[self._mask(statement[:_LONGEST]) for statement in call.statements],
            error=call.error,
        )
