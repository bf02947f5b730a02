// Members, reserved files, the shared context and the log.

import { $, el, face, longText, rich, sync, time, trouble } from "./dom.js";
import { read } from "./live.js";

const LINES = 300;
let lines = [];

export function all(state) {
  members(state.members);
  reservations(state.reservations);
  context(state.context);
  lines = state.log;
  log();
}

export function change(change) {
  if (change.members) members(change.members);
  if (change.reservations) reservations(change.reservations);
  if (change.context) context(change.context);
  if (change.log) {
    const shown = new Set(lines.map((line) => line.id));
    lines = [...lines, ...change.log.filter((line) => !shown.has(line.id))].slice(-LINES);
    log();
  }
}

const ORDER = ["active", "idle", "away", "left"];

function members(all) {
  const sorted = [...all].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || a.name.localeCompare(b.name));
  sync($("members"), sorted, (member) => member.name, member);
  $("members-empty").hidden = all.some((member) => !member.you);
}

function member(it) {
  const place = [it.client, it.branch ? `on ${it.branch}` : null].filter(Boolean).join(", ");
  const seen = it.seen_at ? new Date(it.seen_at).toLocaleString() : "never";
  return el("li", { class: "member", "data-is": it.state },
    el("p", { class: "row" },
      face(it.name),
      el("b", { dir: "auto" }, it.name),
      it.you && el("span", { class: "faint" }, "(you)"),
      el("span", { class: "state", title: `last seen: ${seen}` }, el("span", { class: "dot", "aria-hidden": "true" }), it.state === "idle" ? it.shown : it.state)),
    it.state === "away" && el("p", { class: "faint" }, it.seen_at ? ["last seen ", time(it.seen_at)] : "not seen yet"),
    it.role && el("p", { class: "faint", dir: "auto" }, `@${it.role}`),
    it.note && el("p", { class: "note", dir: "auto" }, rich(it.note)),
    it.tasks.length > 0 && el("ul", { class: "plain has" }, it.tasks.map((task) =>
      el("li", { dir: "auto" }, el("a", { href: `#T${task.id}` }, `T${task.id}`), " ", task.status !== "in_progress" && el("span", { class: "tag" }, task.status.replace("_", " ")), ` ${task.title}`))),
    place && el("p", { class: "faint", title: it.checkout ?? "", dir: "auto" }, place));
}

function reservations(all) {
  sync($("reservations"), all, (it) => it.id, (it) =>
    el("li", { class: "card" },
      el("p", {}, el("code", { dir: "auto" }, it.pattern)),
      it.reason && el("p", { dir: "auto" }, it.reason),
      el("p", { class: "faint by", title: it.checkout }, face(it.holder), el("span", { dir: "auto" }, it.holder), time(it.ends_at, "left"))));
  $("reservations-empty").hidden = all.length > 0;
}

function context(all) {
  sync($("context"), all, (it) => it.key, (it) => {
    const value = el("div", {}, longText(it.value + (it.is_whole ? "" : "…")));
    const place = el("p", { class: "trouble", hidden: true });
    const more = el("button", {
      type: "button", class: "quiet",
      async onclick() {
        try {
          const whole = await read(`/web/context?key=${encodeURIComponent(it.key)}`);
          const text = el("div", { class: "text", dir: "auto", tabIndex: -1 }, rich(whole.value));
          value.replaceChildren(text);
          more.remove();
          text.focus({ preventScroll: true });
        } catch (err) {
          trouble(place, err);
        }
      },
    }, `Show all ${it.bytes.toLocaleString()} bytes`);
    return el("li", { class: "card" },
      el("h3", { dir: "auto" }, it.name),
      value, !it.is_whole && more, place,
      el("p", { class: "faint by" }, face(it.author), el("span", { dir: "auto" }, it.author), el("span", {}, `version ${it.version}`), time(it.at)));
  });
  $("context-empty").hidden = all.length > 0;
}

function log() {
  sync($("lines"), [...lines].reverse(), (line) => line.id, (line) =>
    el("li", {}, time(line.at, "clock"), el("div", {}, el("p", { dir: "auto" }, rich(line.words)), line.text ? longText(line.text) : null)));
  $("log-empty").hidden = lines.length > 0;
}
