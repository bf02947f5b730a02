// Messages by thread, the newest thread first. A thread's element stays the same one, and with it
// what is being typed into it.

import { $, el, face, goOn, longText, onSubmit, setText, time } from "./dom.js";
import { read } from "./live.js";

/// So many messages stay on the page while it is open; who wants more goes back.
const MOST = 1200;
/// A longer thread shows its last messages, and a button for those before them.
const [LONG, LAST] = [8, 5];

const all = new Map();
const threads = new Map();
let oldest = null;
let you = "human";
let act;
let news = () => {};

export const onNews = (hook) => { news = hook; };

export function begin(onAct) {
  act = onAct;
  onSubmit($("write"), async () => {
    const [to, content] = [$("write-to").value, $("write-body").value];
    const told = to === "" ? await act("broadcast", { content }) : await act("send_message", { recipient: to, content });
    if ($("write-body").value === content) $("write-body").value = "";
    goOn($("write-body"));
    return told;
  });
  // Where there is no such key, it is not spoken of.
  if (!matchMedia("(hover: hover)").matches) $("write-body").placeholder = "Write to the table";
  $("notices").addEventListener("change", () => $("threads").classList.toggle("with-notices", $("notices").checked));
  $("older").addEventListener("click", async () => {
    $("older").disabled = true;
    try {
      const more = await read(`/web/messages?before=${oldest}`);
      take(more.messages);
      oldest = more.messages[0]?.id ?? oldest;
      $("older").hidden = !more.older;
    } catch { /* The button is there to be pressed again. */ } finally {
      $("older").disabled = false;
    }
  });
}

export { all_ as all };
function all_(state) {
  you = state.you || "human";
  // After a pause on the line what was shown goes where the server does not have it at once.
  const ids = new Set(state.messages.map((message) => message.id));
  [...all.keys()].filter((id) => !ids.has(id)).forEach(forget);
  oldest = state.messages[0]?.id ?? null;
  take(state.messages);
  $("older").hidden = !state.older;
  recipients(state.members);
}

/// Another table's messages go; what is being typed to one of them goes to where one writes anew.
export function leave() {
  const drafts = [...threads.values()].map((thread) => thread.body.value).filter((text) => text.trim());
  const field = $("write-body");
  if (drafts.length) field.value = [field.value, ...drafts].filter((text) => text.trim()).join("\n\n");
  all.clear();
  threads.clear();
  $("threads").replaceChildren();
}

export function change(change) {
  if (change.members) recipients(change.members);
  for (const [id, n, handed, readBy] of change.standings ?? []) {
    const shown = all.get(id);
    if (shown) stand(shown, { ...shown.message, n, handed, read: readBy });
  }
  if (change.messages) {
    const fresh = change.messages.filter((message) => !all.has(message.id));
    take(change.messages);
    oldest ??= change.messages[0].id;
    if (all.size > MOST) trim();
    news(fresh.map((message) => ({ ...message, isForYou: isForYou(message) })).filter((message) => message.from !== you));
  }
}

const isForYou = (message) => !message.is_auto && (message.to === you || message.is_broadcast);

/// Takes a message off the page. A thread in which something is typed stays as it is.
function forget(id) {
  const shown = all.get(id);
  const thread = threads.get(shown.message.thread);
  if (thread.body.value || thread.element.contains(document.activeElement)) return;
  all.delete(id);
  shown.element.remove();
  if (thread.list.children.length) {
    outline(thread);
  } else {
    thread.element.remove();
    threads.delete(shown.message.thread);
  }
}

function trim() {
  const ids = [...all.keys()].sort((a, b) => a - b);
  const cut = ids[ids.length - Math.floor(MOST / 2)];
  ids.filter((id) => id < cut).forEach(forget);
  oldest = cut;
  $("older").hidden = false;
}

function take(messages) {
  const touched = new Set();
  for (const message of messages) {
    const shown = all.get(message.id);
    if (shown) {
      stand(shown, message);
      continue;
    }
    const thread = threads.get(message.thread) ?? newThread(message.thread);
    const element = item(message);
    all.set(message.id, element);
    const after = [...thread.list.children].find((other) => Number(other.dataset.id) > message.id);
    thread.list.insertBefore(element.element, after ?? null);
    thread.last = Math.max(thread.last, message.id);
    touched.add(thread);
  }
  for (const thread of touched) outline(thread);
  order();
  $("messages-empty").hidden = all.size > 0;
  const n = $("threads").querySelectorAll(":scope > .notices").length;
  $("notices-switch").hidden = n === 0;
  setText($("n-notices"), String(n));
}

function outline(thread) {
  const items = [...thread.list.children];
  thread.cut.hidden = Number(items[0]?.dataset.id) === thread.id;
  const isAuto = items.every((child) => child.classList.contains("auto"));
  thread.element.classList.toggle("auto", isAuto);
  // The program's own words to somebody else: the log and the tasks say the same.
  thread.element.classList.toggle("notices", isAuto && !items.some((child) => child.dataset.to === you));
  const n = items.length;
  thread.element.setAttribute("aria-label", `Thread #${thread.id}, ${n} ${n === 1 ? "message" : "messages"}`);
  items.forEach((child, at) => {
    const answers = child.querySelector(".answers");
    if (answers) answers.hidden = all.get(Number(child.dataset.id)).message.reply_to === Number(items[at - 1]?.dataset.id);
  });
  const isLong = n > LONG && !thread.isOpen;
  items.forEach((child, at) => { child.hidden = isLong && at < n - LAST && !child.contains(document.activeElement); });
  thread.more.hidden = !isLong;
  if (isLong) setText(thread.more, `Show ${n - LAST} earlier messages`);
}

/// The newest first. A thread that somebody types into is not moved: that would end the typing.
function order() {
  const place = $("threads");
  const wanted = [...threads.values()].sort((a, b) => b.last - a.last);
  const held = document.activeElement?.closest?.("#threads > article");
  let at = place.firstElementChild;
  for (const { element } of wanted) {
    if (element === held && element.isConnected && element !== at) continue;
    while (at && at === held && element !== held) at = at.nextElementSibling;
    if (element === at) at = at.nextElementSibling;
    else place.insertBefore(element, at);
  }
}

function newThread(id) {
  const list = el("ol", { class: "plain" });
  const cut = el("p", { class: "faint", hidden: true }, `The thread begins with #${id}, further back.`);
  const more = el("button", { type: "button", class: "quiet more", hidden: true, onclick: () => {
    thread.isOpen = true;
    outline(thread);
    list.firstElementChild.tabIndex = -1;
    list.firstElementChild.focus({ preventScroll: true });
  } });
  const body = el("textarea", { rows: 3, required: true, id: `reply-${id}` });
  const label = el("label", { for: body.id });
  const form = el("form", { class: "composer", hidden: true },
    label, body,
    el("div", { class: "row end" },
      el("p", { class: "told", role: "status" }),
      el("button", { type: "button", class: "quiet", onclick: () => open(false) }, "Not now"),
      el("button", { class: "main" }, "Send")),
    el("p", { class: "trouble", role: "alert", hidden: true }));
  const button = el("button", { type: "button", class: "quiet writes", "aria-describedby": `thread-${id}`, onclick: () => open(true) }, "Answer");
  const told = el("p", { class: "told faint", role: "status" });
  const open = (isOpen) => {
    form.hidden = !isOpen;
    button.hidden = isOpen;
    setText(told, "");
    if (isOpen) {
      setText(label, answerTo(list).words);
      body.focus();
      form.scrollIntoView({ block: "nearest" });
    } else {
      setText(button, body.value.trim() ? "Go on with your answer" : "Answer");
      button.focus();
      order();
    }
  };
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing) open(false);
  });
  onSubmit(form, async () => {
    const content = body.value;
    const { tool, given } = answerTo(list);
    setText(told, await act(tool, { ...given, content }));
    const said = told.textContent;
    if (body.value === content) {
      body.value = "";
      open(false);
      setText(told, said);
    }
  });
  const name = el("span", { class: "hidden", id: `thread-${id}` }, `in thread #${id}`);
  const element = el("article", { class: "card thread" }, cut, more, list, el("div", { class: "row" }, button, name, told), form);
  const thread = { id, element, list, cut, more, body, last: 0, isOpen: false };
  threads.set(id, thread);
  return thread;
}

/// An answer is for the last one who spoke there beside the person; where nobody did, for those who
/// were written to.
function answerTo(list) {
  const messages = [...list.children].map((child) => all.get(Number(child.dataset.id)).message);
  const last = messages.findLast((message) => message.from !== you) ?? messages.at(-1);
  if (last.from === you && last.is_broadcast) return { tool: "broadcast", given: {}, words: "To everyone again" };
  const words = last.is_auto ? "Answer" : `Answer to ${last.from === you ? last.to : last.from}`;
  return { tool: "send_message", given: { reply_to: last.id }, words };
}

function item(message) {
  const isYou = message.from === you;
  const names = ["message", isYou && "yours", isForYou(message) && "for-you", message.is_auto && "auto"].filter(Boolean);
  const standing = el("span", { class: "standing" });
  const element = el("li", { class: names.join(" "), "data-id": message.id, "data-to": message.to },
    el("header", {},
      face(message.from),
      el("b", { class: "who", dir: "auto" }, isYou ? "you" : message.from),
      el("span", { class: "to" }, "to ", el("span", { class: isForYou(message) && "you", dir: "auto" }, message.to === you ? "you" : message.to)),
      message.is_auto && el("span", { class: "tag" }, "auto"),
      message.reply_to && message.reply_to !== message.thread && el("span", { class: "faint answers" }, `answers #${message.reply_to}`),
      el("span", { class: "facts" }, standing, el("span", { class: "faint" }, `#${message.id}`), time(message.at))),
    longText(message.body));
  const shown = { element, standing, message };
  stand(shown, message);
  return shown;
}

function stand(shown, message) {
  shown.message = message;
  const { n, handed, read: readBy } = message;
  const words = n === 0 ? "for nobody" : n === 1
    ? (readBy ? "read" : handed ? "handed" : "unread")
    : `read by ${readBy} of ${n}`;
  shown.standing.hidden = message.is_auto || message.to === you;
  setText(shown.standing, words);
  shown.standing.dataset.is = readBy === n ? "read" : "waits";
  shown.standing.title = `${n} ${n === 1 ? "recipient" : "recipients"}, handed to ${handed}, read by ${readBy}`;
}

/// The choice of recipients, without losing what is chosen.
function recipients(members) {
  const others = members.filter((member) => !member.you);
  const roles = [...new Set(others.map((member) => member.role).filter(Boolean))].sort();
  const options = [
    ["", "everyone"],
    ...others.map((member) => [member.name, `${member.name} (${member.state})`]),
    ...roles.map((role) => [`@${role}`, `@${role}`]),
  ];
  choose($("write-to"), options);
  const names = [[you, "me"], ...others.map((member) => [member.name, member.name])];
  choose($("create-assignee"), [["", "anyone"], ...names]);
  choose($("assign-to"), [["", "nobody"], ...names]);
}

function choose(select, options) {
  const print = JSON.stringify(options);
  if (select.dataset.print === print) return;
  // A list that is open would close.
  if (document.activeElement === select) {
    select.addEventListener("blur", () => choose(select, options), { once: true });
    return;
  }
  const chosen = select.value;
  // Who has gone meanwhile stays chosen: the server says what is wrong with that.
  if (chosen && !options.some(([value]) => value === chosen)) options = [...options, [chosen, `${chosen} (not here)`]];
  select.dataset.print = print;
  select.replaceChildren(...options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
}
