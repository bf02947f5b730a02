"""A client of the Python package `mcp` 1.x, over the network: it writes to `peer` and waits for the answer.

Arguments: http or sse, the address. The token, if there is one, is in $ADA_TOKEN.
"""

import asyncio
import os
import sys

from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client

TRANSPORT, URL = sys.argv[1:]
TOKEN = os.environ.get("ADA_TOKEN")
HEADERS = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}


async def call(session: ClientSession, tool: str, **given: str) -> str:
    result = await session.call_tool(tool, given)
    text = "".join(part.text for part in result.content)
    print(f"> {tool}\n{text}")
    assert not result.isError, f"{tool} failed"
    return text


async def main() -> None:
    connect = streamablehttp_client if TRANSPORT == "http" else sse_client
    async with connect(URL, headers=HEADERS) as streams, ClientSession(*streams[:2]) as session:
        print((await session.initialize()).protocolVersion)
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert {"send_message", "wait_for_messages"} <= set(names), names
        await call(session, "send_message", recipient="peer", content="Which port is free?")
        assert "| 8742 is." in await call(session, "wait_for_messages")
        assert "| 8742 is." not in await call(session, "get_messages")  # it has read that


asyncio.run(main())
