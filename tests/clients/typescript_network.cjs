// A TypeScript client over the network: it writes to `peer` and waits for the answer.
// Arguments: typescript-sdk (1.x) or typescript-client (2.x), http or sse, the address, for 2.x how to negotiate (auto or
// legacy). NODE_PATH says where the clients are; the token, if there is one, is in $ADA_TOKEN.

const assert = require("node:assert");

const [which, transport, url, mode] = process.argv.slice(2);
const old = which === "typescript-sdk";
const from = (path) => require(old ? `@modelcontextprotocol/sdk/client/${path}.js` : "@modelcontextprotocol/client");
const { Client } = from("index");
const { StreamableHTTPClientTransport } = from("streamableHttp");
const { SSEClientTransport } = from("sse");

async function call(client, name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  const text = result.content.map((part) => part.text).join("");
  console.log(`> ${name}\n${text}`);
  assert(!result.isError, `${name} failed`);
  return text;
}

async function main() {
  const token = process.env.ADA_TOKEN;
  const requestInit = token ? { headers: { Authorization: `Bearer ${token}` } } : {};
  const Transport = transport === "http" ? StreamableHTTPClientTransport : SSEClientTransport;
  const options = old ? {} : { versionNegotiation: { mode } };
  const client = new Client({ name: "typescript", version: "1.0.0" }, options);
  await client.connect(new Transport(new URL(url), { requestInit }));
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  assert(names.includes("send_message") && names.includes("wait_for_messages"), `tools: ${names}`);
  await call(client, "send_message", { recipient: "peer", content: "Which port is free?" });
  assert((await call(client, "wait_for_messages")).includes("| 8742 is."), "the answer did not come");
  assert(!(await call(client, "get_messages")).includes("| 8742 is."), "the answer came twice");
  await client.close();
}

main().catch((error) => {
  console.log(error);
  process.exit(1);
});
