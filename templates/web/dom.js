// How the page is built: text of others only ever becomes a text node, here.

export const $ = (id) => document.getElementById(id);

/// An element with properties, attributes (`aria-…`, `data-…`, `for`, `role`) and children.
/// Children are elements or text; text is never read as markup.
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.includes("-") || key === "for" || key === "role" || key === "dir") element.setAttribute(key, value);
    else if (key === "class") element.className = value;
    else element[key] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/// Sets a text only where it is another one, so that what is selected stays so.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// The server's clock less ours.
let ahead = 0;

export function setClock(now) {
  ahead = now - Date.now();
}

export const now = () => Date.now() + ahead;

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const DAY = 86400000;

function span(millis) {
  const minutes = Math.floor(Math.abs(millis) / 60000);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / 1440)} days`;
}

function age(at, kind) {
  const past = now() - at;
  if (kind === "left") return past > -60000 ? "under a minute left" : `${span(past)} left`;
  if (kind === "clock" && new Date(at).toDateString() === new Date(now()).toDateString()) return clock.format(at);
  if (kind === "clock" || past >= DAY) return day.format(at);
  return past < 60000 ? "just now" : `${span(past)} ago`;
}

/// A time as an age, or as the clock shows it, with the full time in its title.
export function time(at, kind = "ago") {
  const date = new Date(at);
  return el("time", { dateTime: date.toISOString(), title: full.format(date), "data-at": at, "data-kind": kind }, age(at, kind));
}

export function tick() {
  for (const element of document.querySelectorAll("time[data-at]")) {
    setText(element, age(Number(element.dataset.at), element.dataset.kind));
  }
}

/// Brings the children of `parent` into line with `items`: `key` names an item, `same` tells whether
/// its element is still right, `make` makes a new one. What is right is left alone.
export function sync(parent, items, key, make) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    const print = JSON.stringify(item);
    let child = old.get(name);
    old.delete(name);
    if (!child || child.dataset.print !== print) {
      const fresh = make(item);
      fresh.dataset.key = name;
      fresh.dataset.print = print;
      if (child) {
        const focused = child.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
        if (child === at) at = fresh;
        child.replaceWith(fresh);
        if (focused) fresh.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
      }
      child = fresh;
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
  for (const child of old.values()) child.remove();
}

/// Runs `change`, and what the person looks at or types into stays where it is on the screen.
export function keepStill(change) {
  const active = document.activeElement;
  const isTyping = active && active.matches("textarea, input, select") && active.closest("main");
  const anchor = isTyping ? active : window.scrollY > 80 ? firstSeen() : null;
  const before = anchor?.getBoundingClientRect().top;
  change();
  if (anchor && anchor.isConnected) {
    const moved = anchor.getBoundingClientRect().top - before;
    if (Math.abs(moved) >= 1) window.scrollBy({ top: moved, behavior: "instant" });
  }
}

function firstSeen() {
  const all = document.querySelectorAll("#threads > article:not([hidden]) li, #lines > li, #board li");
  for (const element of all) {
    const box = element.getBoundingClientRect();
    if (box.height && box.bottom > 130) return box.top < innerHeight ? element : null;
  }
  return null;
}

const HUES = 8;
const hues = new Map();

/// A member's colour follows from its name; as long as there are free ones, no two have the same.
function hue(name) {
  if (!hues.has(name)) {
    const taken = new Set(hues.size < HUES ? hues.values() : []);
    let at = [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 9973, 7) % HUES;
    while (taken.has(at)) at = (at + 1) % HUES;
    hues.set(name, at);
  }
  return hues.get(name);
}

/// What stands for a member beside its name: its letter, its number, its colour.
export function face(name) {
  const letters = `${[...name][0]}${/\d{1,2}$/.exec(name)?.[0] ?? ""}`.toUpperCase();
  return el("span", { class: "face", "data-hue": name === "human" ? "human" : hue(name), "aria-hidden": "true" }, letters);
}

/// What is found in a text: code, an address, a task.
const FOUND = /`([^`\n]+)`|(https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}])|\b(T[1-9]\d{0,8})\b/g;

function* found(text) {
  let at = 0;
  for (const { 0: whole, 1: code, 2: address, 3: task, index } of text.matchAll(FOUND)) {
    yield text.slice(at, index);
    if (code) yield el("code", {}, code);
    else if (address) yield el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, address);
    else yield el("a", { href: `#${task}` }, task);
    at = index + whole.length;
  }
  yield text.slice(at);
}

/// A text as its parts, with blocks of code and what else is found in it. Each part is a text node,
/// whatever it says. Takes as long as the text is, whatever it is made of.
export function rich(text) {
  const pieces = text.split(/^```.*\n?/m);
  if (pieces.length === 1) return [...found(text)];
  return pieces.flatMap((piece, at) => {
    if (at % 2) return el("pre", {}, el("code", {}, piece.endsWith("\n") ? piece.slice(0, -1) : piece));
    return [...found(at ? piece.trim() : piece.trimEnd())];
  });
}

/// A long text, folded with a button that opens it.
export function longText(text) {
  const body = el("div", { class: "text", dir: "auto" }, rich(text));
  if (text.length < 1400 && text.split("\n").length < 18) return [body];
  body.classList.add("folded");
  const button = el("button", {
    type: "button",
    class: "quiet",
    "aria-expanded": "false",
    onclick() {
      const isOpen = !body.classList.toggle("folded");
      button.setAttribute("aria-expanded", String(isOpen));
      setText(button, isOpen ? "Show less" : "Show all");
    },
  }, "Show all");
  // Who comes to an address in what is hidden has to see it.
  body.addEventListener("focusin", () => { if (body.classList.contains("folded")) button.click(); });
  return [body, button];
}

/// Says something to who does not see the page.
export function say(text) {
  setText($("said"), text);
}

/// Shows what went wrong in a form, with its hint, or clears it.
export function trouble(place, err) {
  place.hidden = !err;
  place.replaceChildren(...(err ? [err.message, err.hint ? el("span", { class: "hint" }, err.hint) : ""] : []));
}

/// To where one goes on typing, except where that would bring up a keyboard over the page.
export function goOn(field) {
  if (matchMedia("(hover: hover)").matches) field.focus({ preventScroll: true });
}

/// Does a button's work, once at a time. It is not disabled meanwhile: that would take the focus off it.
export async function once(button, work) {
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

/// A form that asks the server for something. What was typed stays until it is done.
export function onSubmit(form, work) {
  const button = form.querySelector("button:not([type])");
  const told = form.querySelector(".told");
  const wrong = form.querySelector(".trouble");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    once(button, async () => {
      trouble(wrong, null);
      if (told) setText(told, "");
      try {
        const text = await work();
        if (told) setText(told, text || "");
      } catch (err) {
        trouble(wrong, err);
      }
    });
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}
