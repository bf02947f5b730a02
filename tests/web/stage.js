// What the checks of the page stand on: the browser, the program, agents, and a project folder with its server.
"use strict";

const { spawn, spawnSync, execFileSync } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");
const readline = require("node:readline");

const top = path.resolve(__dirname, "../..");
const option = (name) => {
  const at = process.argv.indexOf(name);
  return at > 0 ? process.argv[at + 1] : undefined;
};
const children = [];
const PACKAGES = { "playwright-core": "1", "axe-core": "4" };

function skip(why) {
  console.log(`skip: ${why}`);
  process.exit(0);
}

/// What an agent's environment says stays out: the program heeds it.
const env = (home) => ({ PATH: process.env.PATH, HOME: home, TZ: "UTC" });

/// A package of npm, installed where it is not yet.
function installed(name) {
  const folder = process.env.TEAM_TABLE_WEB || path.join(os.homedir(), ".cache/team-table-web");
  const module = path.join(folder, "node_modules", name);
  if (!fs.existsSync(module)) {
    fs.mkdirSync(folder, { recursive: true });
    const all = Object.entries(PACKAGES).map((it) => it.join("@"));
    const npm = spawnSync("npm", ["install", "--silent", "--no-save", "--prefix", folder, ...all], { stdio: "inherit" });
    if (npm.status !== 0) skip(`npm could not install ${name}`);
  }
  return module;
}

function chromium() {
  const named = process.env.CHROMIUM;
  if (named) return named;
  const folders = (process.env.PATH || "").split(path.delimiter);
  const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  const found = names.flatMap((name) => folders.map((folder) => path.join(folder, name))).find((file) => fs.existsSync(file));
  return found || skip("no chromium on PATH (Debian: apt-get install chromium)");
}

function program() {
  if (option("--bin")) return path.resolve(option("--bin"));
  const built = spawnSync("cargo", ["build", "--bin", "team-table"], { cwd: top, stdio: "inherit" });
  if (built.status !== 0) throw new Error("`cargo build` failed");
  return path.join(process.env.CARGO_TARGET_DIR || path.join(top, "target"), "debug/team-table");
}

/// An agent: `team-table serve` over its stdin and stdout.
class Agent {
  constructor(stage, name, client = "claude-code", more = {}) {
    this.child = spawn(stage.bin, ["serve", "--name", name], { cwd: stage.folder, env: { ...env(stage.home), ...more }, stdio: ["pipe", "pipe", "ignore"] });
    children.push(this.child);
    this.waiting = new Map();
    this.last = 0;
    readline.createInterface({ input: this.child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
    });
    // Who waits for an agent that has ended waits for ever.
    this.child.once("exit", (code) => this.waiting.forEach((tell) => tell({ error: `${name} has ended with ${code}` })));
    this.ready = this.ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: client, version: "2.1" } })
      .then(({ error }) => {
        if (error) throw new Error(JSON.stringify(error));
        this.send({ method: "notifications/initialized" });
      });
  }

  send(message) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  ask(method, params) {
    const id = ++this.last;
    return new Promise((resolve) => {
      this.waiting.set(id, (message) => {
        this.waiting.delete(id);
        resolve(message);
      });
      this.send({ id, method, params });
    });
  }

  async call(name, given = {}) {
    await this.ready;
    const { result, error } = await this.ask("tools/call", { name, arguments: given });
    if (error || result.isError) throw new Error(`${name}: ${JSON.stringify(error || result.content)}`);
    return result.content.map((part) => part.text).join("\n");
  }

  async leave() {
    this.child.stdin.end();
    await new Promise((resolve) => this.child.once("exit", resolve));
  }
}

/// A project folder with its server.
class Stage {
  static async lay(bin, name = "table") {
    const stage = new Stage();
    stage.bin = bin;
    stage.root = fs.mkdtempSync(path.join(os.tmpdir(), "team-table-web-"));
    stage.home = path.join(stage.root, "home");
    stage.folder = path.join(stage.root, name);
    fs.mkdirSync(path.join(stage.folder, ".agent-comms"), { recursive: true });
    fs.mkdirSync(stage.home);
    stage.port = await new Promise((resolve) => {
      const server = net.createServer().listen(0, "127.0.0.1", () => {
        const { port } = server.address();
        server.close(() => resolve(port));
      });
    });
    stage.url = `http://127.0.0.1:${stage.port}`;
    await stage.serve();
    return stage;
  }

  async serve() {
    const given = ["serve", "--transport", "streamable-http", "--port", String(this.port)];
    this.server = spawn(this.bin, given, { cwd: this.folder, env: env(this.home), stdio: ["ignore", "ignore", "inherit"] });
    children.push(this.server);
    for (let n = 0; n < 100; n++) {
      if (await fetch(this.url).then((it) => it.ok, () => false)) return;
      await sleep(50);
    }
    throw new Error("the server does not answer");
  }

  async stop() {
    const gone = new Promise((resolve) => this.server.once("exit", resolve));
    this.server.kill("SIGINT");
    await gone;
  }

  run(...given) {
    return execFileSync(this.bin, given, { cwd: this.folder, env: env(this.home), encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  }

  address() {
    return this.run("web", "--port", String(this.port));
  }
}

const sleep = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

function check(is, what) {
  if (!is) throw new Error(what);
}

/// A text is on the page within a second of `began`.
async function sees(page, text, began, most = 1000) {
  await page.locator("#threads").getByText(text, { exact: true }).first().waitFor({ timeout: 5000 });
  const took = Date.now() - began;
  check(took < most, `${text} took ${took} ms`);
  return took;
}

const HOSTILE = '<img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script>&lt;b&gt;';

/// Every page is watched for what it must not do.
async function newPage(browser, options, address) {
  const page = await (await browser.newContext(options)).newPage();
  page.setDefaultTimeout(10000);
  page.wrong = [];
  page.on("pageerror", (err) => page.wrong.push(String(err)));
  page.on("console", (message) => {
    const isOffline = /ERR_CONNECTION|ERR_INTERNET|ERR_INCOMPLETE|Failed to load resource/.test(message.text());
    if (message.type() === "error" && !isOffline) page.wrong.push(message.text());
  });
  page.on("dialog", (dialog) => page.wrong.push(dialog.message()));
  await page.goto(address);
  if (address !== "about:blank") await page.locator("#connection[data-is=live]").waitFor();
  return page;
}

module.exports = { option, skip, installed, chromium, program, children, Agent, Stage, sleep, check, sees, HOSTILE, newPage };
