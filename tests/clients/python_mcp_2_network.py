"""A client of the Python package `mcp` 2.x, over the network: it writes to `peer` and waits for the answer.

Arguments: http or sse, the address, how to negotiate (auto or legacy). The token, if there is one, is in $ADA_TOKEN.
"""

import asyncio
import os
import sys

from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

TRANSPORT, URL, MODE = sys.argv[1:]
TOKEN = os.environ.get("ADA_TOKEN")
HEADERS = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}


async def call(client: Client, tool: str, **given: str) -> str:
    result = await client.call_tool(tool, given)
    text = "".join(part.text for part in result.content)
    print(f"> {tool}\n{text}")
    assert not result.is_error, f"{tool} failed"
    return text


async def main() -> None:
    if TRANSPORT == "http":
        transport = streamable_http_client(URL, http_client=create_mcp_http_client(headers=HEADERS))
    else:
        transport = sse_client(URL, headers=HEADERS)
    async with Client(transport, mode=MODE) as client:
        print(client.protocol_version)
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"send_message", "wait_for_messages"} <= set(names), names
        await call(client, "send_message", recipient="peer", content="Which port is free?")
        assert "| 8742 is." in await call(client, "wait_for_messages")
        assert "| 8742 is." not in await call(client, "get_messages")  # it has read that


asyncio.run(main())
