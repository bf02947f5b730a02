// The page: its parts, who may write, and what to say of the connection.

import { $, keepStill, onSubmit, say, setClock, setText, tick, trouble } from "./dom.js";
import { act, again, enter, watch } from "./live.js";
import * as messages from "./messages.js";
import * as tasks from "./tasks.js";
import * as rest from "./rest.js";

/// The members come first: they get their colours.
const PARTS = [rest, messages, tasks];
let mayWrite = false;
/// Of which table the page is.
let epoch = null;
let isEntering = false;

const hooks = {
  all(state) {
    setClock(state.now ?? Date.now());
    setText($("name"), state.name || "team-table");
    title();
    setWriting(state.may_write);
    $("gate").hidden = state.may_write;
    if (state.may_write) trouble($("gate").querySelector(".trouble"), null);
    document.body.classList.remove("outside");
    if (epoch !== null && epoch !== state.cursor.epoch) messages.leave();
    epoch = state.cursor.epoch;
    keepStill(() => PARTS.forEach((part) => part.all({ members: [], messages: [], tasks: [], reservations: [], context: [], log: [], ...state })));
    if (isEntering && mayWrite) {
      isEntering = false;
      const field = [$("write-body"), $("new-task").firstElementChild].find((it) => it.offsetParent);
      (field ?? $("main")).focus({ preventScroll: true });
    }
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
    if (sees) setText($("gate-why"), "This board is shown to who has entered. Run");
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
  scrollTo({ top: 0, behavior: "instant" });
  looked();
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

/// For the person, while the window was hidden; and all, while their place was not looked at.
let [unseen, news] = [0, 0];
let toSay = [];
let timer = null;

function title() {
  document.title = `${unseen ? `(${unseen}) ` : ""}${$("name").textContent} · team-table`;
}

const looksAtNews = () => !document.hidden && document.body.dataset.tab === "messages" && scrollY < 80;

function looked() {
  if (!document.hidden) unseen = 0;
  if (looksAtNews()) news = 0;
  setText($("n-news"), news ? `${news} new` : "");
  title();
}

messages.onNews((fresh) => {
  const all = fresh.filter((message) => !message.is_auto);
  // Only what is for the person is said aloud; the rest can be seen.
  const mine = all.filter((message) => message.isForYou);
  news += all.length;
  unseen += mine.length;
  looked();
  if (!mine.length) return;
  toSay.push(...mine);
  timer ??= setTimeout(() => {
    const from = [...new Set(toSay.map((message) => message.from))].join(", ");
    say(toSay.length === 1 ? `New message from ${from}, #${toSay[0].id}` : `${toSay.length} new messages from ${from}, the last is #${toSay.at(-1).id}`);
    toSay = [];
    timer = null;
  }, 1500);
});

document.addEventListener("visibilitychange", looked);
addEventListener("scroll", () => { if (news) looked(); }, { passive: true });

// ---- forms ----

const onAct = (tool, given) => act(tool, given);
messages.begin(onAct);
tasks.begin(onAct, () => mayWrite);

const { hostname, port, origin, protocol } = location;
const isHere = protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(hostname);
if (!isHere) setText($("gate-command"), `team-table web --url ${origin}`);
else if (port !== "8741") setText($("gate-command"), `team-table web --port ${port || 80}`);

onSubmit($("gate"), async () => {
  if (!$("gate-address").value.trim()) return;
  await enter($("gate-address").value);
  $("gate-address").value = "";
  // The gate closes when the state comes; where one types is where one goes on.
  isEntering = $("gate").contains(document.activeElement);
});

/// What the address brings is taken out of it at once, so that it stands in no history.
async function byAddress() {
  const { hash } = location;
  if (!hash.startsWith("#t=") && !/^#T\d+$/.test(hash)) return;
  history.replaceState(null, "", location.pathname);
  if (hash.startsWith("#T")) {
    tasks.open(Number(hash.slice(2)));
    return;
  }
  try {
    await enter(hash.slice(3));
  } catch (err) {
    $("gate").hidden = false;
    trouble($("gate").querySelector(".trouble"), err);
  }
}

addEventListener("hashchange", byAddress);
// A closed tab would take along what is typed.
addEventListener("beforeunload", (event) => {
  if ([...document.querySelectorAll("textarea")].some((field) => field.value.trim())) event.preventDefault();
});
setInterval(tick, 15000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) tick(); });
// A page that comes back from the browser's memory has a dead stream.
addEventListener("pageshow", (event) => { if (event.persisted) again(); });

await byAddress();
watch(hooks);
