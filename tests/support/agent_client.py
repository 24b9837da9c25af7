"""The official client of the Model Context Protocol, which starts the MCP server and calls its tools."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters, stdio_client

REPOSITORY = Path(__file__).parents[2]
_SERVER = ("-m", "services.agents")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool."""

    tool: str
    arguments: Mapping[str, object]

    @classmethod
    def sql(cls, statement: str) -> "ToolCall":
        return cls("run_sql", {"sql": statement})


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What the agent gets: the text it reads, and the same as values unless the call failed."""

    text: str
    is_error: bool
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgentClient:
    """Calls tools of a server that it starts, with settings of its own; `log` gets what the server logs."""

    settings: Mapping[str, str]
    log: Path
    command: Sequence[str] = (sys.executable, *_SERVER)

    def call(self, *calls: ToolCall) -> list[ToolReply]:
        """Call tools one after the other in one session."""
        return anyio.run(self._call, calls)

    def call_together(self, *calls: ToolCall) -> list[ToolReply]:
        """Call tools at the same time in one session."""
        return anyio.run(self._call_together, calls)

    def tools(self) -> list[str]:
        """Return the names of the tools."""
        return anyio.run(self._tools)

    async def _tools(self) -> list[str]:
        with ExitStack() as files:
            async with self._client(files) as client:
                return [tool.name for tool in (await client.list_tools()).tools]

    async def _call(self, calls: Iterable[ToolCall]) -> list[ToolReply]:
        with ExitStack() as files:
            async with self._client(files) as client:
                return [await _reply(client, call) for call in calls]

    async def _call_together(self, calls: Iterable[ToolCall]) -> list[ToolReply]:
        replies: list[ToolReply] = []

        async def ask(client: Client, call: ToolCall) -> None:
            replies.append(await _reply(client, call))

        with ExitStack() as files:
            async with self._client(files) as client, anyio.create_task_group() as together:
                for call in calls:
                    together.start_soon(ask, client, call)
        return replies

    def _client(self, files: ExitStack) -> Client:
        log = files.enter_context(self.log.open("a", encoding="utf-8"))
        server = StdioServerParameters(
            command=self.command[0], args=list(self.command[1:]), env=dict(self.settings), cwd=REPOSITORY
        )
        return Client(stdio_client(server, errlog=log))


async def _reply(client: Client, call: ToolCall) -> ToolReply:
    result = await client.call_tool(call.tool, dict(call.arguments))
    text = "\n".join(each.text for each in result.content if each.type == "text")
    return ToolReply(text, bool(result.is_error), result.structured_content or {})
