"""Two clients of the Python package `mcp` 2.x: one writes, the other reads. Arguments: the program, the project.

The reader negotiates as this package does unless told otherwise, the writer as the older protocol wants it.
"""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters, stdio_client

PROGRAM, PROJECT = sys.argv[1:]
SERVER = StdioServerParameters(command=PROGRAM, args=["serve"], cwd=PROJECT, env=dict(os.environ))


async def call(client: Client, tool: str, **given: str) -> str:
    result = await client.call_tool(tool, given)
    text = "".join(part.text for part in result.content)
    print(f"> {tool}\n{text}")
    assert not result.is_error, f"{tool} failed"
    return text


async def main() -> None:
    async with Client(stdio_client(SERVER), mode="legacy") as writer, Client(stdio_client(SERVER)) as reader:
        for client in (writer, reader):
            print(client.protocol_version)
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {"send_message", "get_messages"} <= set(names), names
        await call(reader, "register", name="reader")
        await call(writer, "send_message", recipient="reader", content="Hello from Python.")
        assert "| Hello from Python." in await call(reader, "get_messages")


asyncio.run(main())
