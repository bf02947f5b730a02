// What goes wrong or grows: another table, used addresses, a session that ended, two tabs, many messages.
"use strict";

const { Agent, check, newPage, sees } = require("./stage.js");

/// A table that is reset while the page is open: the page shows the new one, and keeps what is typed.
async function reset(browser, stage) {
  let ada = new Agent(stage, "ada");
  const id = /#(\d+)/.exec(await ada.call("send_message", { recipient: "human", content: "of the old table" }))[1];
  const page = await newPage(browser, {}, stage.address());
  const thread = page.locator("article", { has: page.locator(`[data-id="${id}"]`) });
  await thread.getByRole("button", { name: /^Answer/ }).click();
  await page.keyboard.type("an answer");
  await ada.leave();
  stage.run("reset", "--yes", "--force");
  await page.locator("#messages-empty").waitFor();
  check(await page.locator("#threads article").count() === 0, "messages of the old table are still there");
  check(await page.locator("#write-body").inputValue() === "an answer", "what was typed is lost with the table");
  ada = new Agent(stage, "ada");
  const began = Date.now();
  await ada.call("send_message", { recipient: "human", content: "of the new table" });
  await sees(page, "of the new table", began, 2000);
  check(page.wrong.length === 0, page.wrong.join("\n"));
  await page.context().close();
  await ada.leave();
}

/// Who may not write is told what to do, wherever that is found out.
async function outside(browser, stage) {
  const used = stage.address();
  const first = await newPage(browser, {}, used);
  await first.locator("#write").waitFor();
  const second = await newPage(browser, {}, used);
  await second.locator("#gate .trouble .hint").getByText("run `team-table web` again").waitFor();
  check((await second.locator("#gate-command").textContent()) === `team-table web --port ${stage.port}`, "the command is another one");
  // A second address lets the second in; both see each other.
  await second.locator("#gate-address").fill(stage.address());
  await second.locator("#gate-address").press("Enter");
  await second.locator("#write").waitFor();
  check(await second.evaluate(() => document.activeElement.id) === "write-body", "who has entered does not stand where one writes");
  await second.keyboard.type("from the second");
  let began = Date.now();
  await second.keyboard.press("Control+Enter");
  await sees(first, "from the second", began);

  // The session ends with the server. A page that did not notice yet is told by its next word.
  await first.locator("#write-body").fill("a long thought");
  await first.context().setOffline(true);
  await stage.stop();
  await stage.serve();
  await first.context().setOffline(false);
  await first.locator("#connection[data-is=live]").waitFor({ timeout: 20000 });
  await first.locator("#gate").waitFor();
  await first.locator("#write").getByRole("button", { name: "Send" }).click();
  await first.locator("#write .trouble .hint").getByText("team-table web").waitFor();
  await first.goto(stage.address());
  await first.locator("#gate").waitFor({ state: "hidden" });
  await first.locator("#write-body").press("Control+Enter");
  await sees(first, "a long thought", Date.now());
  for (const page of [first, second]) {
    check(page.wrong.length === 0, page.wrong.join("\n"));
    await page.context().close();
  }
}

/// Many messages: the first answer stays small and the page quick.
async function many(browser, stage, n) {
  const ada = new Agent(stage, "ada", "claude-code", { TEAM_TABLE_MAX_PER_MINUTE: "0" });
  await ada.call("register", {});
  const words = "A line of a message, as agents write them, with `code` and some more. ".repeat(4);
  for (let at = 1; at <= n; at++) {
    await ada.call("broadcast", { content: `${at} ${words}` });
  }
  const page = await newPage(browser, {}, "about:blank");
  const began = Date.now();
  await page.goto(stage.url);
  await page.locator("#threads").getByText(new RegExp(`^${n} A line`)).waitFor();
  const took = Date.now() - began;
  const bytes = (await (await fetch(`${stage.url}/web/state`)).arrayBuffer()).byteLength;
  check(took < 3000, `the first message is seen after ${took} ms`);
  check(bytes < 1024 * 1024, `the first answer has ${bytes} bytes`);
  for (const shown of [400, 600]) {
    await page.locator("#older").click();
    await page.waitForFunction((n) => document.querySelectorAll(".message").length === n, shown);
  }
  const sent = Date.now();
  await ada.call("broadcast", { content: "and one more" });
  await sees(page, "and one more", sent, 3000);
  // Who reads further down goes on reading there.
  const id = await page.locator(".message").nth(300).getAttribute("data-id");
  const read = page.locator(`.message[data-id="${id}"]`);
  await read.evaluate((it) => it.scrollIntoView({ block: "center" }));
  const before = await read.boundingBox();
  await ada.call("broadcast", { content: "while one reads" });
  await sees(page, "while one reads", Date.now(), 3000);
  const after = await read.boundingBox();
  check(Math.abs(before.y - after.y) < 2, `what is read jumped by ${after.y - before.y}`);
  await page.context().close();
  await ada.leave();
  console.log(`ok: of ${n} messages the first is seen after ${took} ms, the first answer has ${Math.round(bytes / 1024)} KiB`);
}

module.exports = async function rough(browser, lay) {
  await reset(browser, await lay());
  await outside(browser, await lay());
  await many(browser, await lay(), 5000);
  console.log("ok: another table, used addresses, sessions that ended");
};
