// The page: its parts, who may write, and what to say of the connection.

import { $, el, keepStill, onSubmit, setClock, setText, tick, trouble } from "./dom.js";
import { act, again, enter, watch } from "./live.js";
import * as messages from "./messages.js";
import * as tasks from "./tasks.js";
import * as rest from "./rest.js";

const PARTS = [messages, tasks, rest];
let mayWrite = false;

const hooks = {
  all(state) {
    setClock(state.now ?? Date.now());
    setText($("name"), state.name || "team-table");
    title();
    setWriting(state.may_write);
    $("gate").hidden = state.may_write;
    document.body.classList.remove("outside");
    keepStill(() => PARTS.forEach((part) => part.all({ members: [], messages: [], tasks: [], reservations: [], context: [], log: [], ...state })));
  },
  change(change) {
    if (change.now) setClock(change.now);
    keepStill(() => PARTS.forEach((part) => part.change(change)));
  },
  is(how, err) {
    const words = {
      live: "Live",
      offline: "Offline, trying again",
      outside: "Not entered",
      trouble: err?.message,
    };
    const place = $("connection");
    place.dataset.is = how;
    place.title = err?.message ?? "";
    setText(place, words[how]);
  },
  outside(sees = false) {
    setWriting(false);
    $("gate").hidden = false;
    document.body.classList.toggle("outside", sees);
    if (sees) setText($("gate-says"), "This board is shown to who has entered. Run `team-table web` in the project and open the address that it prints, or paste it here.");
  },
};

/// Forms are hidden, not emptied: what is typed is there when the person has entered again.
function setWriting(may) {
  mayWrite = may;
  document.body.classList.toggle("may-write", may);
  $("write").hidden = !may && !$("write-body").value;
  $("new-task").hidden = !may && !$("create-title").value;
  $("comment").hidden = !may && !$("comment-text").value;
}

// ---- tabs ----

const tabs = [...document.querySelectorAll("[role=tab]")];

function show(tab, focus) {
  const name = tab.getAttribute("aria-controls");
  for (const other of tabs) {
    const isIt = other === tab;
    other.setAttribute("aria-selected", String(isIt));
    other.tabIndex = isIt ? 0 : -1;
    const panel = $(other.getAttribute("aria-controls"));
    if (panel.id !== "people") panel.hidden = !isIt;
  }
  document.body.dataset.tab = name;
  if (focus) tab.focus();
  if (name === "messages") setUnseen(0);
  scrollTo({ top: 0, behavior: "instant" });
}

for (const tab of tabs) {
  tab.addEventListener("click", () => show(tab));
  tab.addEventListener("keydown", (event) => {
    const seen = tabs.filter((other) => other.offsetParent !== null);
    const at = seen.indexOf(tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: seen.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(seen[(to + seen.length) % seen.length], true);
  });
}

const isWide = matchMedia("(min-width: 60rem)");
isWide.addEventListener("change", () => {
  if (isWide.matches && document.body.dataset.tab === "people") show(tabs[0]);
});

// ---- what is new, said once and not for each message ----

let unseen = 0;
let toSay = [];
let timer = null;

function setUnseen(n) {
  unseen = n;
  title();
}

function title() {
  document.title = `${unseen ? `(${unseen}) ` : ""}${$("name").textContent} · team-table`;
}

messages.onNews((fresh) => {
  // Only what is for the person is said aloud; the rest can be seen.
  const mine = fresh.filter((message) => message.isForYou);
  if (!mine.length) return;
  if (document.hidden) setUnseen(unseen + mine.length);
  toSay.push(...mine);
  timer ??= setTimeout(() => {
    const from = [...new Set(toSay.map((message) => message.from))].join(", ");
    setText($("said"), toSay.length === 1 ? `New message from ${from}` : `${toSay.length} new messages from ${from}`);
    toSay = [];
    timer = null;
  }, 1500);
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) setUnseen(0);
});

// ---- forms ----

const onAct = (tool, given) => act(tool, given);
messages.begin(onAct);
tasks.begin(onAct, () => mayWrite);

onSubmit($("gate"), async () => {
  if (!$("gate-address").value.trim()) return;
  await enter($("gate-address").value);
  $("gate-address").value = "";
});

/// What the address brings is taken out of it at once, so that it stands in no history.
async function enterByAddress() {
  if (!location.hash.startsWith("#t=")) return;
  const token = location.hash.slice(3);
  history.replaceState(null, "", location.pathname);
  try {
    await enter(token);
  } catch (err) {
    $("gate").hidden = false;
    trouble($("gate").querySelector(".trouble"), err);
  }
}

addEventListener("hashchange", enterByAddress);
// A closed tab would take along what is typed.
addEventListener("beforeunload", (event) => {
  if ([...document.querySelectorAll("textarea")].some((field) => field.value.trim())) event.preventDefault();
});
setInterval(tick, 15000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) tick(); });
// A page that comes back from the browser's memory has a dead stream.
addEventListener("pageshow", (event) => { if (event.persisted) again(); });

await enterByAddress();
watch(hooks);
