// The server: requests, who may write, and the stream of changes, which is taken up again by itself.

const SECRET = "team-table-session";
/// The stream says something every 15 seconds.
const SILENCE = 40000;

class Refused extends Error {
  constructor(status, told) {
    super(told.error || `the server answered ${status}`);
    this.status = status;
    this.hint = told.hint;
  }
}

/// Where the browser keeps nothing for us, the secret lasts as long as the page.
let secret = null;
try {
  secret = sessionStorage.getItem(SECRET);
} catch { /* Then it is kept here alone. */ }

function keep(value) {
  secret = value;
  try {
    if (value) sessionStorage.setItem(SECRET, value);
    else sessionStorage.removeItem(SECRET);
  } catch { /* As above. */ }
}

export const hasSecret = () => Boolean(secret);

function headers(more) {
  return secret ? { ...more, [SECRET]: secret } : more;
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store", credentials: "omit", redirect: "error" });
  } catch {
    throw new Refused(0, { error: "the server does not answer", hint: "what you typed is still here; try again when the page is live" });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Refused(response.status, told);
}

export const read = async (path) => (await ask(path)).json();

async function write(path, value) {
  const body = JSON.stringify(value);
  return (await ask(path, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
}

/// Asks for something as the human; gives what the server says of it.
export async function act(tool, given) {
  try {
    return (await write("/web/act", { tool, arguments: given })).text;
  } catch (err) {
    if (err.status === 401) {
      keep(null);
      hooks.outside();
    }
    throw err;
  }
}

/// Exchanges the token of an address for a session.
export async function enter(text) {
  const token = text.trim().split("#t=").pop().trim();
  keep((await write("/web/enter", { token })).session);
  again();
}

let hooks;
let stopped = new AbortController();
let waits = null;
let heardAt = 0;

/// Asks for everything anew, and then for what changes.
export function again() {
  stopped.abort();
  waits?.();
}

/// Watches for ever. `all` is given the state, `change` what is new, `is` how the connection stands,
/// `outside` hears that writing, or looking, needs a way in.
export async function watch(given) {
  hooks = given;
  let pause = 500;
  for (;;) {
    stopped = new AbortController();
    try {
      const state = await read("/web/state");
      if (secret && !state.may_write) keep(null);
      hooks.all(state);
      pause = 500;
      await follow(state.cursor);
      await new Promise((resolve) => setTimeout(resolve, 300));
    } catch (err) {
      if (stopped.signal.aborted) continue;
      if (err.status === 401) {
        keep(null);
        hooks.outside(true);
        hooks.is("outside");
      } else {
        hooks.is("offline", err);
      }
      await new Promise((resolve) => {
        waits = resolve;
        setTimeout(resolve, err.status === 401 ? 60000 : pause);
      });
      waits = null;
      pause = Math.min(pause * 2, 8000);
    }
  }
}

async function follow(cursor) {
  const silence = new AbortController();
  stopped.signal.addEventListener("abort", () => silence.abort());
  let timer;
  const heard = () => {
    heardAt = Date.now();
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE);
  };
  heard();
  try {
    const response = await ask(`/web/events?${new URLSearchParams(cursor)}`, { signal: silence.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Refused(0, { error: "the server has ended the stream" });
      heard();
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const name = /^event: (.*)$/m.exec(part)?.[1];
        const data = /^data: (.*)$/m.exec(part)?.[1];
        if (name === "again") return;
        if (name === "trouble") hooks.is("trouble", new Refused(0, JSON.parse(data)));
        if (name === "change") {
          hooks.is("live");
          hooks.change(JSON.parse(data));
        }
      }
    }
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

// A page that was put aside may have lost its stream without a word.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && Date.now() - heardAt > SILENCE / 2) again();
});
addEventListener("online", () => again());
addEventListener("offline", () => again());
