"""Two sessions of the Python package `mcp` 1.x: one writes, the other reads. Arguments: the program, the project."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PROGRAM, PROJECT = sys.argv[1:]
SERVER = StdioServerParameters(command=PROGRAM, args=["serve"], cwd=PROJECT, env=dict(os.environ))


async def call(session: ClientSession, tool: str, **given: str) -> str:
    result = await session.call_tool(tool, given)
    text = "".join(part.text for part in result.content)
    print(f"> {tool}\n{text}")
    assert not result.isError, f"{tool} failed"
    return text


async def main() -> None:
    async with (
        stdio_client(SERVER) as one,
        stdio_client(SERVER) as two,
        ClientSession(*one) as writer,
        ClientSession(*two) as reader,
    ):
        for session in (writer, reader):
            print((await session.initialize()).protocolVersion)
            names = [tool.name for tool in (await session.list_tools()).tools]
            assert {"send_message", "get_messages"} <= set(names), names
        await call(reader, "register", name="reader")
        await call(writer, "send_message", recipient="reader", content="Hello from Python.")
        assert "| Hello from Python." in await call(reader, "get_messages")


asyncio.run(main())
