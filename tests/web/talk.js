// Two browsers and an agent over stdio see each other's messages within a second; what is typed is never lost.
"use strict";

const { Agent, HOSTILE, check, newPage, sees } = require("./stage.js");

module.exports = async function talk(browser, stage) {
  const ada = new Agent(stage, "ada");
  await ada.call("register", { role: "reviewer" });
  const looker = await newPage(browser, {}, stage.url);
  check(await looker.locator("#write").isHidden(), "who only looks has no form");
  check(await looker.locator("#gate").isVisible(), "who only looks is told how to enter");
  const address = stage.address();
  const writer = await newPage(browser, {}, address);
  check(!writer.url().includes("#"), "the token is taken out of the address");
  const second = await newPage(browser, {}, address);
  check(await second.locator("#write").isHidden(), "an address is good for once");
  await second.context().close();

  let began = Date.now();
  await ada.call("broadcast", { content: "from the agent" });
  const first = await Promise.all([sees(looker, "from the agent", began), sees(writer, "from the agent", began)]);
  began = Date.now();
  await writer.locator("#write-to").selectOption("ada");
  await writer.locator("#write-body").fill("from the person");
  await writer.locator("#write-body").press("Control+Enter");
  const back = await Promise.all([sees(looker, "from the person", began), sees(writer, "from the person", began)]);
  check((await ada.call("get_messages")).includes("| from the person"), "the agent reads it");
  // The stream may show it before the answer to the form is there.
  await writer.waitForFunction(() => document.querySelector("#write-body").value === "", null, { timeout: 5000 });

  began = Date.now();
  const id = Number(/#(\d+)/.exec(await ada.call("send_message", { recipient: "human", content: HOSTILE }))[1]);
  await sees(writer, HOSTILE, began);
  check(await writer.locator("#threads img, #threads script, #threads b:not(.who)").count() === 0, "markup became elements");
  check(!(await writer.title()).includes("broken"), "a script ran");

  // Code, addresses and tasks are shown as such; what they hold is text too, and no address runs anything.
  const block = '<img src=x onerror="document.title=1">\n\n  `a` https://b.example';
  began = Date.now();
  await ada.call("send_message", { recipient: "human", content: `See:\n\n\`\`\`js\n${block}\n\`\`\`\n\nand \`<b>x</b>\` at https://c.example/d?e=1#f, javascript:alert(1) for T1.` });
  await sees(writer, "<b>x</b>", began);
  check(await writer.locator("#threads pre > code").textContent() === block, "a block of code is another one");
  const links = await writer.locator("#threads a").evaluateAll((all) => all.map((it) => [it.getAttribute("href"), it.textContent, it.rel]));
  check(JSON.stringify(links) === '[["https://c.example/d?e=1#f","https://c.example/d?e=1#f","noopener noreferrer"],["#T1","T1",""]]', JSON.stringify(links));
  const slow = await writer.evaluate(async () => {
    const { rich } = await import("/web/dom.js");
    const all = ["\n", "```a\n", "`", "```", "https://", "T1", " ", "(", "https://.\n", "`a\n"].map((it) => it.repeat(16384 / it.length));
    const from = performance.now();
    all.forEach((text) => rich(text));
    return performance.now() - from;
  });
  check(slow < 2000, `odd texts take ${slow} ms`);

  // What is typed stays, and the focus with it, while others write.
  const thread = writer.locator("article", { has: writer.locator(`[data-id="${id}"]`) });
  await thread.getByRole("button", { name: /^Answer/ }).click();
  await writer.keyboard.type("half an ans");
  const before = await thread.locator("textarea").boundingBox();
  for (let n = 0; n < 5; n++) await ada.call("broadcast", { content: `meanwhile ${n}` });
  await sees(writer, "meanwhile 4", Date.now());
  const after = await thread.locator("textarea").boundingBox();
  check(Math.abs(before.y - after.y) < 2, `the form jumped by ${after.y - before.y}`);
  await writer.keyboard.type("wer");
  check(await thread.locator("textarea").inputValue() === "half an answer", "what was typed is lost");
  began = Date.now();
  await writer.keyboard.press("Control+Enter");
  await sees(looker, "half an answer", began);
  check((await ada.call("get_messages")).includes(`reply to #${id}`), "the answer is in its thread");

  // Tasks.
  await writer.getByRole("tab", { name: /^Tasks/ }).click();
  await writer.locator("#new-task summary").click();
  await writer.locator("#create-title").fill("Fix the parser");
  await writer.locator("#create").getByRole("button", { name: "Create" }).click();
  await writer.getByRole("button", { name: "Claim: T1" }).click();
  await writer.locator(".column[data-status=in_progress]").getByText("Fix the parser").waitFor();
  await writer.getByRole("button", { name: "Done: T1" }).click();
  await writer.locator(".column[data-status=done]").getByText("Fix the parser").waitFor();
  await writer.getByRole("button", { name: "Fix the parser" }).click();
  await writer.locator("#comment-text").fill("well done");
  await writer.locator("#comment").getByRole("button", { name: "Comment" }).click();
  await writer.locator("#task .history").getByText("well done").waitFor();
  await writer.keyboard.press("Escape");

  // Errors are shown with their hint, and what was typed stays.
  await writer.getByRole("tab", { name: "Messages" }).click();
  await writer.locator("#write-body").fill("x".repeat(20000));
  await writer.locator("#write").getByRole("button", { name: "Send" }).click();
  await writer.locator("#write .trouble .hint").waitFor();
  check((await writer.locator("#write-body").inputValue()).length === 20000, "a refused text is lost");

  // The server goes and comes back: the page says so, and goes on.
  await writer.locator("#write-body").fill("kept");
  await thread.getByRole("button", { name: /^Answer/ }).click();
  await thread.locator("textarea").fill("kept too");
  await stage.stop();
  await writer.locator("#connection[data-is=offline]").waitFor();
  await stage.serve();
  await writer.locator("#connection[data-is=live]").waitFor({ timeout: 15000 });
  check(await writer.locator("#write-body").inputValue() === "kept", "what was typed is lost with the server");
  check(await thread.locator("textarea").inputValue() === "kept too", "an answer is lost with the server");
  check(await writer.locator("#gate").isVisible(), "a new server wants a new way in");
  await writer.locator("#gate-address").fill(stage.address());
  await writer.locator("#gate-address").press("Enter");
  await writer.locator("#gate").waitFor({ state: "hidden" });
  began = Date.now();
  await ada.call("broadcast", { content: "after the pause" });
  await sees(writer, "after the pause", began);
  for (const page of [looker, writer]) {
    check(page.wrong.length === 0, page.wrong.join("\n"));
    await page.context().close();
  }
  await ada.leave();
  console.log(`ok: an agent's message after ${Math.max(...first)} ms, a person's after ${Math.max(...back)} ms`);
};
