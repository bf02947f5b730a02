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

function span(millis) {
  const minutes = Math.floor(Math.abs(millis) / 60000);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / 1440)} days`;
}

function age(at, kind) {
  const past = now() - at;
  if (kind === "left") return past > -60000 ? "under a minute left" : `${span(past)} left`;
  return past < 60000 ? "just now" : `${span(past)} ago`;
}

/// A time as an age, with the full time in its title.
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

/// A long text, folded with a button that opens it.
export function longText(text) {
  const body = el("div", { class: "text", dir: "auto" }, text);
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
  return [body, button];
}

/// Shows what went wrong in a form, with its hint, or clears it.
export function trouble(place, err) {
  place.hidden = !err;
  place.replaceChildren(...(err ? [err.message, err.hint ? el("span", { class: "hint" }, err.hint) : ""] : []));
}

/// A form that asks the server for something. What was typed stays until it is done.
export function onSubmit(form, work) {
  const button = form.querySelector("button:not([type])");
  const told = form.querySelector(".told");
  const wrong = form.querySelector(".trouble");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    trouble(wrong, null);
    if (told) setText(told, "");
    try {
      const text = await work();
      if (told) setText(told, text || "");
    } catch (err) {
      trouble(wrong, err);
    } finally {
      button.disabled = false;
    }
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}
