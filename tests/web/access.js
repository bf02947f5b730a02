// Who sees little, uses the keyboard, or has it read aloud: nothing is out of reach, and nothing is said twice.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { Agent, check, installed, newPage, sees, sleep } = require("./stage.js");

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const TABS = ["messages", "tasks", "shared", "log", "people"];

/// axe-core's view of what is on the page now.
async function violations(page, what) {
  const source = fs.readFileSync(path.join(installed("axe-core"), "axe.min.js"), "utf8");
  await page.evaluate(source);
  const found = await page.evaluate((values) => globalThis.axe.run(document, { runOnly: { type: "tag", values }, resultTypes: ["violations"] }), RULES);
  check(found.passes.length > 10, "axe has looked at nothing");
  return found.violations.map((it) => `${what}: ${it.id}, ${it.help}: ${it.nodes.slice(0, 3).map((node) => `${node.target} ${node.any.map((any) => any.message).join("; ")}`).join(" | ")}`);
}

const tab = (page, name) => page.locator(`#tab-${name}`);

async function axe(browser, stage, empty) {
  const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
  const wide = { viewport: { width: 1280, height: 900 } };
  const wrong = [];
  let n = 0;
  const look = async (page, what) => {
    n += 1;
    wrong.push(...await violations(page, what));
  };
  const canary = await newPage(browser, wide, empty.url);
  await canary.evaluate(() => document.querySelector("main").append(Object.assign(document.createElement("img"), { src: "/web/icon.svg" })));
  check((await violations(canary, "canary")).some((it) => it.includes("image-alt")), "axe does not find what is wrong");
  await canary.context().close();
  for (const [where, place] of [["empty", empty], ["busy", stage]]) {
    for (const [size, options] of [["wide", wide], ["phone", phone]]) {
      for (const colorScheme of ["light", "dark"]) {
        for (const may of ["looking", "writing"]) {
          const page = await newPage(browser, { ...options, colorScheme, reducedMotion: "reduce" }, may === "writing" ? place.address() : place.url);
          const what = `${where}, ${size}, ${colorScheme}, ${may}`;
          for (const name of TABS) {
            if (!await tab(page, name).isVisible()) continue;
            await tab(page, name).click();
            await look(page, `${what}, ${name}`);
          }
          if (where === "busy") {
            await tab(page, "tasks").click();
            await page.locator(".task .title").first().click();
            await page.locator("#task .history li").first().waitFor();
            await look(page, `${what}, a task`);
            await page.keyboard.press("Escape");
            if (may === "writing") {
              await page.locator("#new-task summary").click();
              await look(page, `${what}, a new task`);
              await tab(page, "messages").click();
              await page.getByRole("button", { name: /^Answer/ }).first().click();
              await look(page, `${what}, an answer`);
            }
          }
          check(page.wrong.length === 0, page.wrong.join("\n"));
          await page.context().close();
        }
      }
    }
  }
  check(wrong.length === 0, `axe found ${wrong.length}:\n${[...new Set(wrong)].join("\n")}`);
  console.log(`ok: axe found nothing in ${n} states`);
}

/// What has the focus, and whether one sees that it has.
const focused = (page) => page.evaluate(() => {
  const it = document.activeElement;
  const style = getComputedStyle(it);
  const box = it.getBoundingClientRect();
  return {
    id: it.id, name: it.getAttribute("aria-label") || it.textContent.trim().slice(0, 40), tag: it.tagName,
    isSeen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 || it === document.body,
    isOnScreen: box.bottom > 0 && box.top < innerHeight && box.width > 0,
  };
});

async function keyboard(browser, stage) {
  const ada = new Agent(stage, "ada");
  await ada.call("register", {});
  const asked = /#(\d+)/.exec(await ada.call("send_message", { recipient: "human", content: "which one?" }))[1];
  await ada.call("create_task", { title: "by ada" });
  const page = await newPage(browser, { viewport: { width: 1280, height: 900 } }, stage.address());
  await page.locator("#write").waitFor();
  const press = (key) => page.keyboard.press(key);
  /// Tab until it is reached; all on the way is to be seen.
  const reach = async (is, what) => {
    for (let n = 0; n < 60; n++) {
      await press("Tab");
      const it = await focused(page);
      check(it.isSeen && it.isOnScreen, `the focus on ${it.tag} ${it.id} "${it.name}" is not seen`);
      if (is(it)) return;
    }
    throw new Error(`${what} is not reached by Tab`);
  };
  const isNow = async (is, what) => {
    for (let n = 0; n < 40; n++) {
      if (is(await focused(page))) return;
      await sleep(50);
    }
    throw new Error(`the focus is not ${what}: ${JSON.stringify(await focused(page))}`);
  };
  await reach((it) => it.tag === "A" && it.name.startsWith("Skip"), "the skip link");
  await press("Enter");
  await isNow((it) => it.id === "main", "on the content");
  await reach((it) => it.id === "write-to", "the recipient");
  await page.keyboard.type("ada");
  await reach((it) => it.id === "write-body", "the message");
  await page.keyboard.type("by the keyboard");
  await reach((it) => it.tag === "BUTTON" && it.name === "Send", "Send");
  await press("Enter");
  await sees(page, "by the keyboard", Date.now());
  await isNow((it) => it.id === "write-body", "back in the message");

  // An answer: Escape leaves it and keeps what was typed; sent, the focus is back at its button.
  const thread = page.locator("article", { has: page.locator(`[data-id="${asked}"]`) });
  await reach((it) => it.name === "Answer", "Answer");
  while (!await thread.evaluate((it) => it.contains(document.activeElement))) await reach((it) => it.name === "Answer", "Answer");
  await press("Enter");
  await isNow((it) => it.tag === "TEXTAREA", "in the answer");
  await page.keyboard.type("the fir");
  await press("Escape");
  await isNow((it) => it.name === "Go on with your answer", "on the button of the answer");
  await press("Enter");
  await press("End");
  await page.keyboard.type("st");
  await press("Control+Enter");
  await sees(page, "the first", Date.now());
  await isNow((it) => it.name === "Answer", "on the button of the answer");

  // The tabs by arrows, a task by Enter; a card that moves takes the focus along.
  await tab(page, "messages").focus();
  await press("ArrowRight");
  await isNow((it) => it.id === "tab-tasks", "on the tasks");
  await reach((it) => it.tag === "SUMMARY", "New task");
  await press("Enter");
  await reach((it) => it.id === "create-title", "its title");
  await page.keyboard.type("by keys");
  await press("Enter");
  await page.locator(".column[data-status=pending]").getByText("by keys").waitFor();
  await isNow((it) => it.id === "create-title", "in the title, for the next one");
  await reach((it) => it.name === "Claim: T2", "Claim");
  await press("Enter");
  await page.locator(".column[data-status=in_progress]").getByText("by keys").waitFor();
  await isNow((it) => it.name === "by keys", "on the card that moved");
  await press("Enter");
  await page.locator("#task[open] .history li").first().waitFor();
  await reach((it) => it.id === "assign-to", "who holds it");
  await page.keyboard.type("ada");
  await reach((it) => it.name === "Give", "Give");
  await press("Enter");
  await page.locator("#task dd").getByText("ada", { exact: true }).waitFor();
  await page.locator("#task .history").getByText("T2 to ada").waitFor();
  await isNow((it) => it.name === "Give", "on Give still");
  await reach((it) => it.id === "comment-text", "the comment");
  await page.keyboard.type("half");
  await press("Escape");
  await isNow((it) => it.name === "by keys", "on the card again");
  await press("Enter");
  check(await page.locator("#comment-text").inputValue() === "half", "a comment is lost with the dialog");
  await press("Escape");
  check((await ada.call("list_tasks")).includes("T2"), "the agent has the task");

  // What is for the person is said once, and the rest is not.
  await page.evaluate(() => {
    globalThis.said = [];
    new MutationObserver(() => globalThis.said.push(document.getElementById("said").textContent)).observe(document.getElementById("said"), { childList: true });
  });
  const bob = new Agent(stage, "bob");
  await bob.call("register", {});
  for (const content of ["one", "two", "three"]) await ada.call("send_message", { recipient: "human", content });
  await ada.call("send_message", { recipient: "bob", content: "not for you" });
  await page.locator("#n-news").getByText("4 new").waitFor();
  await page.waitForFunction(() => globalThis.said.length);
  await ada.call("heartbeat");
  await sleep(1800);
  const said = await page.evaluate(() => globalThis.said);
  check(said.length === 1 && said[0].startsWith("3 new messages from ada"), `said: ${JSON.stringify(said)}`);
  await tab(page, "messages").click();
  await page.locator("#n-news").getByText("4 new").waitFor({ state: "hidden" });
  check(page.wrong.length === 0, page.wrong.join("\n"));
  await page.context().close();
  await bob.leave();
  await ada.leave();
  console.log("ok: all by the keyboard");
}

/// Twice and four times as large, as a browser does it: with half and a quarter of the room.
async function zoom(browser, stage) {
  for (const [width, height] of [[640, 450], [320, 256]]) {
    const page = await newPage(browser, { viewport: { width, height }, reducedMotion: "reduce" }, stage.address());
    for (const name of TABS) {
      await tab(page, name).click();
      const over = await page.evaluate(() => {
        const room = document.documentElement.clientWidth;
        const all = [...document.querySelectorAll("body *")].filter((it) => it.offsetParent && !it.closest("#board, .hidden, .skip, .tabs") && it.getBoundingClientRect().right > room + 1);
        return { page: document.documentElement.scrollWidth - room, all: all.slice(0, 3).map((it) => `${it.tagName}.${it.className}`) };
      });
      check(over.page <= 0 && over.all.length === 0, `${width} px, ${name}: too wide by ${over.page}: ${over.all}`);
    }
    const { animation } = await page.locator(".message").first().evaluate((it) => ({ animation: getComputedStyle(it).animationName }));
    check(animation === "none", "who wants no motion gets some");
    await page.context().close();
  }
  console.log("ok: twice and four times as large");
}

module.exports = async function access(browser, lay, fill) {
  await keyboard(browser, await lay());
  const [busy, empty] = [await lay(), await lay()];
  const agents = await fill(busy);
  await zoom(browser, busy);
  await axe(browser, busy, empty);
  for (const agent of agents) await agent.leave();
};
