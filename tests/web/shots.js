// Screenshots of an empty and of a busy table.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { Agent, HOSTILE, newPage } = require("./stage.js");

const CODE = "The reader loops here:\n\n```rust\nwhile let Some(token) = lexer.next() {\n    tree.push(token?); // and this line is so long that it does not go onto a phone, nor onto most other screens either\n}\n```\n\n`next` never gives `None` after an error; see https://example.org/issues/17 and T7.";
const SAID = [
  "I take the parser. Please stay out of `src/parse/**` until the tests are green.",
  CODE,
  "分かりました。テストは明日までに直します。長い文章も折り返されるはずです。".repeat(4),
  "مرحبا، الاختبارات تمر الآن، لكن `parse_expr` ما زالت بطيئة (12 ثانية).",
  "שלום, I mix directions: src/main.rs הוא הקובץ.",
  "Green ✅ 🎉 👩‍💻 — 214 tests, 0 failed 🚀",
  HOSTILE,
  `hidden \u202etext\u202c and a word ${"averyveryverylongword".repeat(20)} end`,
  Array.from({ length: 60 }, (_, n) => `line ${n}: a long log that nobody reads to its end`).join("\n"),
  "Fine.",
];

/// Ten members, forty messages and more, tasks in all states, reservations, shared values.
async function fill(stage) {
  const names = ["claude-1", "claude-2", "codex-1", "codex-with-a-rather-long-name-for-a-member", "gemini-1", "copilot-1", "opencode-1", "reviewer-2", "zed-1"];
  const clients = ["claude-code", "claude-code", "codex-mcp-client", "codex-mcp-client", "gemini-cli", "github-copilot", "opencode", "claude-code", "claude-code"];
  const agents = names.map((name, n) => new Agent(stage, name, clients[n], { TEAM_TABLE_MAX_PER_MINUTE: "0" }));
  const [ada, , cody, bob, gem, cop, open, dan] = agents;
  const notes = ["migrating the parser to the new grammar", "", "writing the tests of `lexer.rs`", "reviewing src/transport and everything below it, then the release notes, then what is left of the day"];
  for (const [n, agent] of agents.entries()) await agent.call("register", { role: ["lead", "", "tester", "reviewer"][n] ?? "", note: notes[n] ?? "" });
  await ada.call("broadcast", { content: SAID[0] });
  await bob.call("send_message", { recipient: "claude-1", content: "Fine. I review what is on the branch `feature/parser` in the meantime." });
  for (let n = 0; n < 14; n++) await [ada, bob][n % 2].call("send_message", { reply_to: 2 + n, content: n % 3 ? `Round ${n} of the same question: which of both readings do the tests want?` : SAID[n % SAID.length] });
  for (let n = 1; n < 10; n++) await agents[n % 7].call("send_message", { recipient: n % 2 ? "human" : "@reviewer", content: SAID[n] });
  for (let n = 0; n < 12; n++) await agents[n % 7].call("broadcast", { content: `${SAID[(n * 3) % SAID.length].slice(0, 200)}` });
  await ada.call("send_message", { recipient: "human", content: "The grammar has two readings of `a - -b`. Which one do you want?\n\n1. unary minus binds tighter\n2. an error\n\nThe old parser did 1 by accident. This is T6." });
  await ada.call("reserve_files", { paths: ["src/parse/**", "tests/parse/*.rs"], reason: "the new grammar" });
  await bob.call("reserve_files", { paths: ["src/a/very/deep/folder/with/a/long/name/that/does/not/end/soon/**/*.snapshot.rs"], minutes: 5 });
  await ada.call("share_context", { key: "api/login", value: "POST /login takes JSON; the session is a header, never a cookie." });
  await cody.call("share_context", { key: "ports", value: "```json\n{\"api\": 8080, \"web\": 8741}\n```" });
  await bob.call("share_context", { key: "decisions/2026-11-29-which-grammar-and-why-it-is-this-one", value: "because ".repeat(400) });
  for (let n = 1; n <= 25; n++) {
    const given = { title: n % 7 === 0 ? `Find out why the build of the documentation takes longer than that of everything else (${n})` : `${["Parse", "Test", "Measure", "Document", "Review"][n % 5]} ${["the lexer", "unary minus", "errors in strings", "the tree"][n % 4]} (${n})`, priority: ["low", "medium", "high"][n % 3] };
    if (n % 5 === 0) given.depends_on = [n - 1];
    if (n % 4 === 0) given.assignee = "claude-1";
    if (n % 2) given.description = `What to do: \`${n}\`. Done when the tests are green.`;
    await gem.call("create_task", given);
  }
  await gem.call("update_task", { task_id: 7, comment: HOSTILE });
  for (const id of [3, 6, 9, 13]) await ada.call("claim_task", { task_id: id });
  for (const [agent, id] of [[cody, 11], [cop, 17], [open, 18], [bob, 22]]) await agent.call("claim_task", { task_id: id });
  await ada.call("update_task", { task_id: 3, status: "done", result: "src/parse.rs, with a test" });
  await ada.call("update_task", { task_id: 6, status: "review", result: "`src/parse/unary.rs`; both readings behind a flag" });
  await ada.call("update_task", { task_id: 9, status: "blocked", comment: "needs an answer from the human" });
  await cop.call("update_task", { task_id: 17, status: "done" });
  for (const id of [1, 2]) await gem.call("update_task", { task_id: id, status: "cancelled" });
  await dan.leave();
  return agents.filter((agent) => agent !== dan);
}

async function shoot(browser, stage, folder) {
  fs.mkdirSync(folder, { recursive: true });
  const desktop = { viewport: { width: 1280, height: 900 } };
  const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
  const looks = [["desktop-light", { ...desktop, colorScheme: "light" }], ["desktop-dark", { ...desktop, colorScheme: "dark" }], ["phone", phone], ["phone-dark", { ...phone, colorScheme: "dark" }]];
  const shot = (page, name) => page.screenshot({ path: path.join(folder, `${name}.png`), animations: "disabled" });
  for (const [name, options] of looks.slice(0, 3)) {
    const page = await newPage(browser, options, stage.url);
    await shot(page, `empty-${name}`);
    await page.context().close();
  }
  const agents = await fill(stage);
  for (const [name, options] of looks) {
    const page = await newPage(browser, options, stage.address());
    if (name === "desktop-light") {
      await page.locator("#write-to").selectOption("claude-1");
      await page.locator("#write-body").fill("Unary minus binds tighter, please.");
      await page.locator("#write").getByRole("button", { name: "Send" }).click();
      await page.locator("#write .told").getByText("sent").waitFor();
    }
    await page.locator("#threads article").first().waitFor();
    await shot(page, `messages-${name}`);
    await page.locator("#threads article", { hasText: "Round 13" }).evaluate((it) => it.scrollIntoView({ block: "center" }));
    await shot(page, `threads-${name}`);
    const tabs = ["Tasks", "Shared", "Log", ...(name.startsWith("phone") ? ["Members"] : [])];
    for (const tab of tabs) {
      await page.getByRole("tab", { name: new RegExp(`^${tab}`) }).click();
      await shot(page, `${tab.toLowerCase()}-${name}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) console.log(`${name}, ${tab}: ${wide} px too wide`);
    }
    await page.getByRole("tab", { name: /^Tasks/ }).click();
    await page.locator(".task .title").first().click();
    await page.locator("#task .history li").first().waitFor();
    await shot(page, `task-${name}`);
    await page.keyboard.press("Escape");
    await page.getByRole("tab", { name: "Messages" }).click();
    await page.getByRole("button", { name: /^Answer/ }).nth(1).click();
    await shot(page, `answer-${name}`);
    if (page.wrong.length) console.log(`${name}: ${page.wrong.join("\n")}`);
    await page.context().close();
  }
  for (const agent of agents) await agent.leave();
}

module.exports = { fill, shoot };
