"""A throw-away machine with one project on it, and the real clients in it."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripted_model import PATIENCE, SERVER, ScriptedModel, Step

TIMEOUT = PATIENCE + 50  # seconds for one session of a client
# Claude Code talks to nobody but its model.
QUIET_CLAUDE = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


class Failure(Exception):
    """A case failed; the text says why."""


def expect(true: Any, why: str) -> None:
    if not true:
        raise Failure(why)


class Session:
    """One run of a client with its scripted model."""

    def __init__(self, name: str, command: list[str], env: dict[str, str], cwd: Path, model: ScriptedModel, log: Path):
        self.name, self.model, self.log = name, model, log
        self.stage: Stage
        self.tmux: list[str] = []  # how to reach the terminal that it runs in, if it does
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __getitem__(self, number: int) -> str:
        """What the model saw as the result of this step of its script, from 0."""
        return self.model.steps[number].seen()

    def done(self, number: int) -> bool:
        """Whether the result of this step is there already."""
        return self.model.steps[number].result is not None

    def wait(self) -> "Session":
        try:
            status = self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end within {TIMEOUT} s") from None
        finally:
            self.stop()
        expect(not self.model.complaint, f"{self.name}: {self.model.complaint}")
        expect(status == 0, f"{self.name} ended with status {status}")
        for step in self.model.steps:
            expect(step.kind == "say" or step.result is not None, f"{self.name}: no result of `{step}`")
        return self

    def screen(self) -> str:
        """What a person sees in the terminal now."""
        shown = subprocess.run([*self.tmux, "capture-pane", "-p"], capture_output=True, text=True, errors="replace")
        return shown.stdout.rstrip()

    def type(self, text: str) -> None:
        """As a person does, with Enter behind it."""
        subprocess.run([*self.tmux, "send-keys", "-l", text], check=True)
        time.sleep(0.5)  # what comes faster is taken for pasted text
        subprocess.run([*self.tmux, "send-keys", "Enter"], check=True)

    def press(self, *keys: str) -> None:
        subprocess.run([*self.tmux, "send-keys", *keys], check=True)

    def until(self, what: str, is_so: Callable[[], Any]) -> float:
        """Waits until something is so; how many seconds that took."""
        begin = time.monotonic()
        while not is_so():
            waited = time.monotonic() - begin
            if waited > PATIENCE:
                raise Failure(f"{self.name}: after {PATIENCE} s still not: {what}\n{self.screen() if self.tmux else ''}")
            time.sleep(0.05)
        return time.monotonic() - begin

    def stop(self) -> None:
        if self.tmux:
            subprocess.run([*self.tmux, "kill-server"], capture_output=True)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.model.close()

    def transcript(self) -> str:
        lines = [f"--- {self.name}"]
        for step in self.model.steps:
            lines.append(f"> {step}")
            lines += [] if step.kind == "say" else ["(no result)" if step.result is None else _cut(step.seen())]
        printed = self.screen() if self.tmux else self.log.read_text(errors="replace").strip()
        return "\n".join(lines + (["- it printed:", _cut(printed)] if printed else []))


class Stage:
    """A home folder, a git repository, and the programs on PATH. `lay` makes the repository and runs `init` in it."""

    def __init__(self, program: Path, clients: dict[str, Path]):
        self.clients = clients
        self.root = Path(tempfile.mkdtemp(prefix="team-table-stage-")).resolve()
        self.home, self.project = self.root / "home", self.root / "project"
        for folder in (self.home, self.project, self.root / "bin", self.root / "tmp"):
            folder.mkdir()
        (self.root / "bin" / "team-table").symlink_to(program)
        self.bin = self.root / "bin" / "team-table"
        self.sessions: list[Session] = []
        self.said: list[str] = []  # what was run beside the clients, for the transcript
        # Nothing of the caller's environment: it may itself be the shell of an agent.
        git = Path(shutil.which("git") or "/usr/bin/git").parent
        path = dict.fromkeys([str(self.bin.parent), str(git), "/usr/local/bin", "/usr/bin", "/bin"])
        self.env = {
            "HOME": str(self.home), "PATH": ":".join(path), "TMPDIR": str(self.root / "tmp"),
            "LANG": "C.UTF-8", "TERM": "xterm-256color",
        }
        # Codex runs a login shell for its model, and /etc/profile sets PATH anew.
        (self.home / ".profile").write_text(f"PATH={self.env['PATH']}\n")

    def lay(self) -> None:
        self.git("init", "--quiet", "--initial-branch=main")
        self.run(self.bin, "init", "--yes")
        self.said.clear()  # it went well, and no case needs to show it

    def install(self, what: str) -> None:
        """Hooks, or what wakes idle sessions, too."""
        self.run(self.bin, "init", "--yes", "--with", what)
        self.said.clear()

    # Programs that run to their end

    def run(self, *command: Any, cwd: Path | None = None, env: dict[str, str] | None = None, timeout: int = 60) -> str:
        """What the command printed; a failure if it does not exit with 0."""
        done = subprocess.run(
            [str(word) for word in command], cwd=cwd or self.project, env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=timeout,
        )
        shown = " ".join(Path(str(word)).name if i == 0 else str(word) for i, word in enumerate(command))
        if self.said and self.said[-1].startswith(f"--- {shown}\n"):
            self.said.pop()  # of what is asked again and again, the last answer will do
        self.said.append(f"--- {shown}\n{_cut(done.stdout.strip())}")
        expect(done.returncode == 0, f"`{shown}` ended with status {done.returncode}")
        return done.stdout

    def git(self, *words: str, cwd: Path | None = None) -> str:
        return self.run("git", "-c", "user.name=Test", "-c", "user.email=test@example.org", *words, cwd=cwd)

    def human(self, command: str, *words: str) -> str:
        """A command of ours, spoken by the human."""
        return self.run(self.bin, command, *words, "--as", "human")

    def members(self) -> set[str]:
        return {member["name"] for member in json.loads(self.human("members", "--json"))["members"]}

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Add the clients' files")

    # Clients

    def claude(self, *steps: Step, cwd: Path | None = None, args: tuple[str, ...] = ()) -> Session:
        """With `-p` Claude Code asks neither for trust in the folder nor for the server; only for the tools."""
        model = ScriptedModel(list(steps))
        env = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "not-a-key", **QUIET_CLAUDE}
        allowed = f"mcp__{SERVER}__*" + "".join(f",{step.name}" for step in steps if step.kind == "own")
        command = [str(self.clients["claude"]), "-p", "go", "--allowedTools", allowed, *args]
        return self._start("claude", command, env, cwd, model)

    def codex(self, *steps: Step, cwd: Path | None = None, args: tuple[str, ...] = (), resume: str = "") -> Session:
        """Codex reads the project's file only if its own one says that the project is trusted."""
        self.trust_in_codex()
        model = ScriptedModel(list(steps))
        provider = f'model_providers.scripted.base_url="{model.url}/v1"'
        command = [str(self.clients["codex"]), "exec", "--skip-git-repo-check", "-c", provider, *args]
        command += ["resume", resume, "go"] if resume else ["go"]
        return self._start("codex", command, {"SCRIPTED_KEY": "not-a-key"}, cwd, model)

    def claude_in_terminal(self, *steps: Step) -> Session:
        """As a person has it open, who trusts the folder and the server, and has typed nothing yet."""
        self.trust_in_claude()
        model = ScriptedModel(list(steps))
        env = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_AUTH_TOKEN": "not-a-token", **QUIET_CLAUDE}
        command = [str(self.clients["claude"]), "--permission-mode", "default", "--allowedTools", f"mcp__{SERVER}__*"]
        session = self._in_terminal("claude", command, env, model)
        session.until("a prompt", lambda: "for shortcuts" in session.screen())
        return session

    def codex_in_terminal(self, *steps: Step) -> Session:
        self.trust_in_codex()
        model = ScriptedModel(list(steps))
        file = self.home / ".codex" / "config.toml"
        # The daemon that serves all terminals reads the file, and no `-c` of one of them.
        file.write_text(file.read_text().replace("http://127.0.0.1:9/v1", f"{model.url}/v1"))
        command = [str(self.clients["codex"]), "--dangerously-bypass-hook-trust"]
        session = self._in_terminal("codex", command, {"SCRIPTED_KEY": "not-a-key"}, model)
        # Behind its prompt it may praise another model.
        session.until("a prompt", lambda: "Ask Codex" in session.screen())
        time.sleep(3)
        if "existing model" in session.screen():
            session.press("Down", "Enter")
            session.until("a prompt", lambda: "Ask Codex" in session.screen())
        return session

    def _in_terminal(self, client: str, command: list[str], env: dict[str, str], model: ScriptedModel) -> Session:
        """In tmux, with a server of its own. The client's binary is on PATH there: Codex calls itself."""
        socket = f"team-table-{os.getpid()}-{len(self.sessions) + 1}"
        path = f"{Path(command[0]).parent}:{self.env['PATH']}"
        inside = ["env", "-i", *(f"{k}={v}" for k, v in {**self.env, **env, "PATH": path}.items()), *command]
        tmux = ["tmux", "-L", socket, "-f", "/dev/null"]
        size = ["-x", "140", "-y", "50"]
        session = self._start(client, [*tmux, "new-session", "-d", *size, "-c", str(self.project), *inside], {}, None, model)
        session.process.wait(TIMEOUT)
        session.tmux = tmux
        return session

    def _start(
        self, client: str, command: list[str], env: dict[str, str], cwd: Path | None, model: ScriptedModel
    ) -> Session:
        name = f"{client} (session {len(self.sessions) + 1})"
        log = self.root / f"session-{len(self.sessions) + 1}.log"
        session = Session(name, command, {**self.env, **env}, cwd or self.project, model, log)
        session.stage = self
        self.sessions.append(session)
        return session

    def trust_in_codex(self) -> None:
        file = self.home / ".codex" / "config.toml"
        file.parent.mkdir(exist_ok=True)
        if not file.exists():
            file.write_text(
                'model = "gpt-5.5"\nmodel_provider = "scripted"\n'
                '[model_providers.scripted]\nname = "scripted"\nbase_url = "http://127.0.0.1:9/v1"\n'
                'wire_api = "responses"\nenv_key = "SCRIPTED_KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
                f'[projects."{self.project}"]\ntrust_level = "trusted"\n'
            )

    def trust_in_claude(self) -> None:
        """As a person does who says yes to the folder, and to the server."""
        trusted = {"projects": {str(self.project): {"hasTrustDialogAccepted": True}}, "hasCompletedOnboarding": True}
        (self.home / ".claude.json").write_text(json.dumps(trusted))
        approved = self.project / ".claude" / "settings.local.json"
        approved.parent.mkdir(exist_ok=True)
        approved.write_text(json.dumps({"enabledMcpjsonServers": [SERVER]}))

    def kill_servers(self) -> bool:
        """Kill the servers of all sessions, and give the clients time to notice."""
        servers = [pid for pid in self._processes() if b"\0serve\0" in _proc(pid, "cmdline")]
        for pid in servers:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        return bool(servers)

    # The end

    def transcript(self) -> str:
        return "\n".join(self.said + [session.transcript() for session in self.sessions])

    def close(self, keep: bool) -> None:
        for session in self.sessions:
            session.stop()
        self._kill_rest()
        if not keep:
            shutil.rmtree(self.root, ignore_errors=True)

    def _kill_rest(self) -> None:
        """Servers and daemons that a client left behind."""
        for _ in range(20):
            left = self._processes()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not left:
                return
            time.sleep(0.05)

    def _processes(self) -> list[int]:
        """All that was started here, however deep below: HOME is ours, and every client hands it on."""
        mark = f"\0HOME={self.home}\0".encode()
        pids = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
        return [pid for pid in pids if mark in b"\0" + _proc(pid, "environ")]


def _proc(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""


def _cut(text: str, limit: int = 3000) -> str:
    """A transcript is for reading; the middle of something long is left out, and said so."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}\n[{len(text) - limit} characters left out]\n{text[-limit // 2 :]}"


# What our results say


def me(result: str) -> str:
    """The name that the first result of a session gives: you are `claude-1`."""
    found = re.search(r"you are `?([A-Za-z0-9._-]*[A-Za-z0-9])", result)
    return found.group(1) if found else ""


def sent(result: str) -> str:
    """The number of the message that was sent: sent #41 to codex-1."""
    found = re.search(r"(?:sent|queued) #(\d+)", result)
    return found.group(1) if found else ""


def task(result: str) -> int:
    """The number of the task that was created: created T3 (medium). 0 if there is none."""
    found = re.search(r"created T(\d+)", result)
    return int(found.group(1)) if found else 0


def sender(inbox: str, body: str) -> str:
    """Who wrote this line: the name in the header above it. `#41 codex-1 to you, just now`, then `| body`."""
    name = ""
    for line in inbox.splitlines():
        header = re.match(r"#\d+ `?([A-Za-z0-9._-]+)`? to ", line)
        if header:
            name = header.group(1)
        elif line == f"| {body}":
            return name
    return ""


def new_session_id() -> str:
    return str(uuid.uuid4())
