// The task board: a column for each status; and one task in full, with its history.

import { $, el, longText, onSubmit, setText, sync, time, trouble } from "./dom.js";
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

export function begin(onAct, may) {
  [act, mayWrite] = [onAct, may];
  $("board").append(...COLUMNS.map(([status, name]) =>
    el("section", { class: "column", "data-status": status, "aria-labelledby": `column-${status}` },
      el("h3", { id: `column-${status}` }, name, " ", el("span", { class: "count" })),
      el("ul", { class: "plain" }))));
  onSubmit($("create"), async () => {
    const given = { title: $("create-title").value, priority: $("create-priority").value };
    const description = $("create-description").value;
    if (description.trim()) given.description = description;
    if ($("create-assignee").value) given.assignee = $("create-assignee").value;
    const told = await act("create_task", given);
    if ($("create-title").value === given.title) $("create").reset();
    return told;
  });
  onSubmit($("comment"), async () => {
    const comment = $("comment-text").value;
    const told = await act("update_task", { task_id: shownId, comment });
    if ($("comment-text").value === comment) $("comment-text").value = "";
    return told;
  });
  $("task-close").addEventListener("click", () => $("task").close());
  $("task").addEventListener("close", () => {
    // The card may be another element by now.
    if (document.activeElement === document.body) document.querySelector(`.task[data-key="${shownId}"] .title`)?.focus({ preventScroll: true });
    shownId = null;
  });
  // A click beside the dialog closes it, unless something is typed there.
  $("task").addEventListener("click", (event) => {
    if (event.target === $("task") && !$("comment-text").value) $("task").close();
  });
}

export function all(state) {
  tasks.clear();
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
  const n = [...tasks.values()].filter((task) => !isEnded(task)).length;
  setText($("n-tasks"), n ? String(n) : "");
  $("tasks-empty").hidden = tasks.size > 0;
  $("board").hidden = !tasks.size;
}

function card(task) {
  const who = task.assignee ? [el("span", { dir: "auto" }, task.assignee)] : [el("span", { class: "faint" }, "nobody")];
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

async function step(button, task, to) {
  const isOpen = $("task").open;
  const place = isOpen ? $("task-facts").querySelector(".trouble") : $("tasks-trouble");
  button.disabled = true;
  trouble(place, null);
  try {
    const isClaim = to === "in_progress" && task.status === "pending";
    if (isClaim) await act("claim_task", { task_id: task.id });
    else await act("update_task", { task_id: task.id, status: to, if_version: task.version });
  } catch (err) {
    trouble(place, err);
    button.disabled = false;
    return;
  }
  // The card moves to another column with the change; focus goes along.
  setTimeout(() => {
    if (document.activeElement !== document.body || isOpen) return;
    document.querySelector(`.task[data-key="${task.id}"] .title`)?.focus({ preventScroll: true });
  }, 400);
}

// ---- one task ----

async function open(id) {
  shownId = id;
  if ($("comment").dataset.of !== String(id)) $("comment-text").value = "";
  $("comment").dataset.of = id;
  setText($("comment").querySelector(".told"), "");
  trouble($("comment").querySelector(".trouble"), null);
  $("comment").hidden = !mayWrite();
  setText($("task-title"), `T${id} ${tasks.get(id)?.title ?? ""}`);
  $("task-facts").replaceChildren(el("p", { class: "faint" }, "Loading"));
  $("task").showModal();
  await fill(id);
}

async function fill(id) {
  let task;
  try {
    task = await read(`/web/task?id=${id}`);
  } catch (err) {
    const place = el("p", { class: "trouble" });
    trouble(place, err);
    if (shownId === id) $("task-facts").replaceChildren(place);
    return;
  }
  if (shownId !== id) return;
  setText($("task-title"), `T${id} ${task.title}`);
  const ids = (all) => all.map((it) => `T${it.id} (${it.status.replace("_", " ")})`).join(", ");
  const fact = (name, ...value) => value.some(Boolean) && [el("dt", {}, name), el("dd", { dir: "auto" }, ...value)];
  $("task-facts").replaceChildren(
    el("p", { class: "trouble", role: "alert", hidden: true }),
    el("dl", {},
      fact("Status", task.status.replace("_", " "), ", since ", time(task.moved_at), `, by ${task.moved_by}`),
      fact("Priority", task.priority),
      fact("With", task.assignee ?? "nobody"),
      fact("Made", `by ${task.creator}, `, time(task.created_at)),
      fact("Waits for", ids(task.waits_for)),
      fact("Holds up", ids(task.blocks))),
    ...(task.description ? [el("h3", {}, "Description"), ...longText(task.description)] : []),
    ...(task.result ? [el("h3", {}, "Result"), ...longText(task.result)] : []),
    steps(task, task.steps) ?? "",
    el("h3", {}, "History"),
    el("ol", { class: "plain history" }, task.history.map((line) =>
      el("li", {}, el("p", {}, time(line.at), " ", el("span", { dir: "auto" }, line.words)), line.text ? longText(line.text) : null))),
    task.history_left_out ? el("p", { class: "faint" }, `${task.history_left_out} lines in between are not shown.`) : "");
}
