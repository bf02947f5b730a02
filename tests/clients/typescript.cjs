// Two sessions of a TypeScript client: one writes, the other reads.
// Arguments: typescript-sdk (1.x) or typescript-client (2.x), the program, the project. NODE_PATH says where they are.

const assert = require("node:assert");

const [which, command, cwd] = process.argv.slice(2);
const old = which === "typescript-sdk";
const { Client } = require(old ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StdioClientTransport } = require(
  old ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio",
);

async function connect(name, options) {
  const client = new Client({ name, version: "1.0.0" }, options);
  await client.connect(new StdioClientTransport({ command, args: ["serve"], cwd, env: process.env }));
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  assert(names.includes("send_message") && names.includes("get_messages"), `tools: ${names}`);
  return client;
}

async function call(client, name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  const text = result.content.map((part) => part.text).join("");
  console.log(`> ${name}\n${text}`);
  assert(!result.isError, `${name} failed`);
  return text;
}

async function main() {
  const writer = await connect("typescript");
  // 2.x speaks the older protocol unless told to find out what the server speaks
  const reader = await connect("typescript", old ? {} : { versionNegotiation: { mode: "auto" } });
  await call(reader, "register", { name: "reader" });
  await call(writer, "send_message", { recipient: "reader", content: "Hello from TypeScript." });
  assert((await call(reader, "get_messages")).includes("| Hello from TypeScript."), "the message did not come");
  await Promise.all([writer.close(), reader.close()]);
}

main().catch((error) => {
  console.log(error);
  process.exit(1);
});
