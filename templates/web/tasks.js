// The task board: a column for each status; and one task in full, with its history.

import { $, el, face, goOn, longText, onSubmit, once, say, setText, sync, time, trouble } from "./dom.js";
import { read } from "./live.js";

const COLUMNS = [
  ["pending", "Pending"],
  ["in_progress", "In progress"],
  ["blocked", "Blocked"],
  ["review", "Review"],
  ["done", "Done"],
  ["cancelled", "Cancelled"],
];
const RANK = { high: 0, medium: 1, low: 2 };
/// What a step is called on its button, from where to where.
const STEPS = {
  "pending>in_progress": "Claim",
  "pending>cancelled": "Cancel",
  "in_progress>in_progress": "Take over",
  "in_progress>pending": "Give back",
  "in_progress>blocked": "Blocked",
  "in_progress>review": "To review",
  "in_progress>done": "Done",
  "in_progress>cancelled": "Cancel",
  "blocked>in_progress": "Go on",
  "blocked>cancelled": "Cancel",
  "review>done": "Accept",
  "review>in_progress": "Send back",
  "review>cancelled": "Cancel",
  "done>pending": "Reopen",
  "cancelled>pending": "Reopen",
};
const ENDED = 50;

const tasks = new Map();
let act;
let mayWrite;
let shownId = null;
/// The version of it that is shown, and comments that were begun, by task.
let shown = null;
const drafts = new Map();
/// A task whose card moves, and the focus with it.
let moving = null;

export function begin(onAct, may) {
  [act, mayWrite] = [onAct, may];
  const columns = COLUMNS.map(([status, name]) =>
    el("section", { class: "column", "data-status": status, "aria-labelledby": `column-${status}` },
      el("h3", { id: `column-${status}` }, name, " ", el("span", { class: "count" })),
      el("ul", { class: "plain" })));
  // What has ended is one below the other.
  $("board").append(...columns.slice(0, -2), el("div", { class: "ended" }, columns.slice(-2)));
  onSubmit($("create"), async () => {
    const given = { title: $("create-title").value, priority: $("create-priority").value };
    const description = $("create-description").value;
    if (description.trim()) given.description = description;
    if ($("create-assignee").value) given.assignee = $("create-assignee").value;
    const told = await act("create_task", given);
    if ($("create-title").value === given.title) $("create").reset();
    goOn($("create-title"));
    return told;
  });
  onSubmit($("comment"), async () => {
    const comment = $("comment-text").value;
    const told = await act("update_task", { task_id: shownId, comment });
    if ($("comment-text").value === comment) $("comment-text").value = "";
    goOn($("comment-text"));
    return told;
  });
  onSubmit($("assign"), () =>
    act("update_task", { task_id: shownId, assignee: $("assign-to").value, if_version: shown.version }));
  $("task-close").addEventListener("click", () => $("task").close());
  $("task").addEventListener("close", () => {
    // The card from which it was opened may be another element by now.
    const { activeElement } = document;
    if (activeElement === document.body || $("task").contains(activeElement)) focusCard(shownId);
    keepDraft();
    shownId = null;
  });
  // A click beside the dialog closes it, unless something is typed there.
  $("task").addEventListener("click", (event) => {
    if (event.target === $("task") && !$("comment-text").value) $("task").close();
  });
}

export function all(state) {
  tasks.clear();
  shown = null;
  state.tasks.forEach((task) => tasks.set(task.id, task));
  draw();
  if (shownId !== null) fill(shownId);
}

export function change(change) {
  if (!change.tasks) return;
  change.tasks.forEach((task) => tasks.set(task.id, task));
  draw();
  if (shownId !== null && change.tasks.some((task) => task.id === shownId)) fill(shownId);
}

function draw() {
  const isEnded = (task) => task.status === "done" || task.status === "cancelled";
  const ended = [...tasks.values()].filter(isEnded).sort((a, b) => b.moved_at - a.moved_at);
  ended.slice(ENDED).forEach((task) => tasks.delete(task.id));
  for (const [status] of COLUMNS) {
    const column = document.querySelector(`.column[data-status=${status}]`);
    const own = [...tasks.values()].filter((task) => task.status === status);
    if (status === "done" || status === "cancelled") own.sort((a, b) => b.moved_at - a.moved_at || b.id - a.id);
    else own.sort((a, b) => RANK[a.priority] - RANK[b.priority] || a.id - b.id);
    column.classList.toggle("bare", !own.length);
    setText(column.querySelector(".count"), own.length ? String(own.length) : "");
    sync(column.querySelector("ul"), own, (task) => task.id, card);
  }
  if (moving !== null && document.activeElement === document.body) focusCard(moving);
  const n = [...tasks.values()].filter((task) => !isEnded(task)).length;
  setText($("n-tasks"), n ? String(n) : "");
  $("tasks-empty").hidden = tasks.size > 0;
  $("board").hidden = !tasks.size;
}

function card(task) {
  const who = task.assignee ? [face(task.assignee), el("span", { dir: "auto" }, task.assignee)] : [el("span", { class: "faint" }, "nobody")];
  return el("li", { class: "card task" },
    el("button", { type: "button", class: "title", "data-focus": "title", dir: "auto", onclick: () => open(task.id) }, task.title),
    el("p", { class: "row wrap facts" },
      el("span", { class: "faint" }, `T${task.id}`),
      task.priority !== "medium" && el("span", { class: "tag", "data-is": task.priority }, task.priority),
      time(task.moved_at)),
    el("p", { class: "row wrap facts" },
      ...who,
      task.waits > 0 && task.status === "pending" && el("span", { class: "tag" }, `waits for ${task.waits}`)),
    // To cancel one is for who has looked at it.
    steps(task, task.steps.filter((to) => to !== "cancelled")));
}

function steps(task, all) {
  if (!all.length) return null;
  return el("div", { class: "row wrap writes steps" }, all.map((to) => {
    const word = STEPS[`${task.status}>${to}`] ?? to;
    return el("button", {
      type: "button", class: "small", "data-focus": to, "aria-label": `${word}: T${task.id}`,
      onclick: (event) => step(event.currentTarget, task, to),
    }, word);
  }));
}

function step(button, task, to) {
  const isOpen = $("task").open;
  const place = isOpen ? $("task-trouble") : $("tasks-trouble");
  return once(button, async () => {
    trouble(place, null);
    moving = isOpen ? null : task.id;
    try {
      const isClaim = to === "in_progress" && task.status === "pending";
      if (isClaim) say(await act("claim_task", { task_id: task.id }));
      else say(await act("update_task", { task_id: task.id, status: to, if_version: task.version }));
      if (moving !== null && document.activeElement === document.body) focusCard(moving);
    } catch (err) {
      moving = null;
      trouble(place, err);
      place.scrollIntoView({ block: "nearest" });
    }
  });
}

/// The card is another element by now, in another column.
function focusCard(id) {
  document.querySelector(`.task[data-key="${id}"] .title`)?.focus({ preventScroll: true });
  moving = null;
}

// ---- one task ----

function keepDraft() {
  const text = $("comment-text").value;
  if (shownId === null) return;
  if (text.trim()) drafts.set(shownId, text);
  else drafts.delete(shownId);
}

export async function open(id) {
  keepDraft();
  [shownId, shown] = [id, null];
  $("comment-text").value = drafts.get(id) ?? "";
  for (const form of [$("comment"), $("assign")]) {
    setText(form.querySelector(".told"), "");
    trouble(form.querySelector(".trouble"), null);
  }
  trouble($("task-trouble"), null);
  $("comment").hidden = !mayWrite() && !$("comment-text").value;
  $("assign").hidden = true;
  setText($("task-title"), `T${id} ${tasks.get(id)?.title ?? ""}`);
  $("task-facts").replaceChildren(el("p", { class: "faint" }, "Loading"));
  $("task-texts").replaceChildren();
  if (!$("task").open) $("task").showModal();
  $("task").scrollTop = 0;
  await fill(id);
}

async function fill(id) {
  let task;
  try {
    task = await read(`/web/task?id=${id}`);
  } catch (err) {
    if (shownId !== id) return;
    trouble($("task-trouble"), err);
    if (!shown) $("task-facts").replaceChildren();
    return;
  }
  if (shownId !== id) return;
  trouble($("task-trouble"), null);
  const isSame = shown && JSON.stringify(shown) === JSON.stringify(task);
  const holder = shown?.assignee;
  shown = task;
  if (isSame) return;
  setText($("task-title"), `T${id} ${task.title}`);
  $("assign").hidden = task.status === "done" || task.status === "cancelled";
  if (holder === undefined || holder !== task.assignee) $("assign-to").value = task.assignee ?? "";
  const focused = document.activeElement;
  const isIn = (place) => place.contains(focused) && (focused.dataset.focus ?? "");
  const [inFacts, inTexts] = [isIn($("task-facts")), isIn($("task-texts"))];
  $("task-facts").replaceChildren(facts(task), steps(task, task.steps) ?? "");
  $("task-texts").replaceChildren(...texts(task));
  if (inFacts === false && inTexts === false) return;
  const next = inFacts && $("task-facts").querySelector(`[data-focus="${inFacts}"]`);
  (next || $("task-close")).focus({ preventScroll: true });
}

function facts(task) {
  const ids = (all) => all.flatMap((it) => [", ", el("a", { href: `#T${it.id}` }, `T${it.id}`), ` (${it.status.replace("_", " ")})`]).slice(1);
  const fact = (name, ...value) => value.some(Boolean) && [el("dt", {}, name), el("dd", { dir: "auto" }, ...value)];
  return el("dl", {},
    fact("Status", task.status.replace("_", " "), ", since ", time(task.moved_at), `, by ${task.moved_by}`),
    fact("Priority", task.priority),
    fact("With", task.assignee ?? "nobody"),
    fact("Made", `by ${task.creator}, `, time(task.created_at)),
    fact("Waits for", ...ids(task.waits_for)),
    fact("Holds up", ...ids(task.blocks)));
}

function texts(task) {
  return [
    ...(task.description ? [el("h3", {}, "Description"), ...longText(task.description)] : []),
    ...(task.result ? [el("h3", {}, "Result"), ...longText(task.result)] : []),
    el("h3", {}, "History"),
    el("ol", { class: "plain history" }, task.history.map((line) =>
      el("li", {}, el("p", {}, time(line.at, "clock"), " ", el("span", { dir: "auto" }, line.words)), line.text ? longText(line.text) : null))),
    task.history_left_out ? el("p", { class: "faint" }, `${task.history_left_out} lines in between are not shown.`) : "",
  ];
}
