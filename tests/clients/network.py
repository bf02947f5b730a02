"""What is shown over the network: the real clients at `team-table serve --transport streamable-http` and `sse`.

Each writes to a member that sits at the same table over stdio, and waits for the answer of that one.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cases import HERE, case
from drive import Session, Stage, expect, me, sender, sent
from scripted_model import call, say
from served import Served

QUESTION, ANSWER = "Which port is free?", "8742 is."
VARIABLE = "ADA_TOKEN"  # where the clients find the token of `ada`


def lead(stage: Stage, client: str, url: str, variable: str | None = None) -> None:
    """The client's file leads to the server instead of starting one, as `init` writes it."""
    token = ["--token-env", variable] if variable else []
    stage.run(stage.bin, "init", "--yes", "--client", client, "--url", url, *token)
    stage.said.pop()


# Claude Code and Codex


@case("claude")
def claude_over_http(stage: Stage) -> None:
    with _served(stage, "streamable-http", token=True) as url:
        lead(stage, "claude", url, VARIABLE)
        _asks(stage, stage.claude)


@case("claude")
def claude_over_sse(stage: Stage) -> None:
    with _served(stage, "sse", token=False) as url:
        lead(stage, "claude", url)
        _asks(stage, stage.claude)


@case("codex")
def codex_over_http(stage: Stage) -> None:
    with _served(stage, "streamable-http", token=True) as url:
        lead(stage, "codex", url, VARIABLE)
        _asks(stage, stage.codex)


@case("claude codex")
def claude_and_codex_over_http_share_a_table(stage: Stage) -> None:
    """Without tokens. Claude Code has no session in which it could be named, so its name is in the address."""
    question, answer = "Is the build green?", "It is."
    with Served(stage.bin, stage.project, stage.env, "streamable-http") as served:
        lead(stage, "claude", f"{served.url}?name=reviewer")
        lead(stage, "codex", served.url)
        codex = stage.codex(
            call("register"),
            call("get_messages", after=lambda: claude.done(0)),
            call("send_message", recipient="reviewer", content=answer),
            say("answered"),
        )
        claude = stage.claude(
            call("send_message", after=lambda: codex.done(0), recipient="codex-1", content=question),
            call("wait_for_messages"),
            say("I have the answer"),
        )
        claude.wait(), codex.wait()
    expect(sender(codex[1], question) == "reviewer", "Codex does not see the question as one of `reviewer`")
    expect(sender(claude[1], answer) == "codex-1", "Claude Code does not see the answer as one of `codex-1`")


# Other clients


@case("python-mcp-1")
def python_mcp_1_over_the_network(stage: Stage) -> None:
    for transport in ("http", "sse"):
        _asks_by_script(stage, transport, stage.clients["python-mcp-1"], HERE / "python_mcp_1_network.py")


@case("python-mcp-2")
def python_mcp_2_over_the_network(stage: Stage) -> None:
    for transport, mode in (("http", "auto"), ("http", "legacy"), ("sse", "legacy")):
        _asks_by_script(stage, transport, stage.clients["python-mcp-2"], HERE / "python_mcp_2_network.py", last=mode)


@case("node typescript-sdk")
def typescript_sdk_1_over_the_network(stage: Stage) -> None:
    for transport in ("http", "sse"):
        _typescript(stage, "typescript-sdk", transport)


@case("node typescript-client")
def typescript_client_2_over_the_network(stage: Stage) -> None:
    for transport, mode in (("http", "auto"), ("http", "legacy"), ("sse", "legacy")):
        _typescript(stage, "typescript-client", transport, mode)


def _typescript(stage: Stage, client: str, transport: str, mode: str = "") -> None:
    stage.env["NODE_PATH"] = str(stage.clients[client].parents[2])
    _asks_by_script(stage, transport, stage.clients["node"], HERE / "typescript_network.cjs", client, last=mode)


# Beside the cases


class Peer:
    """A member that sits at the table over stdio, waits for one message and answers it."""

    def __init__(self, stage: Stage):
        self.server = subprocess.Popen(
            [stage.bin, "serve", "--name", "peer"], cwd=stage.project, env=stage.env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        self.last = 0
        meet = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "peer", "version": "1"}}
        self._request("initialize", meet)
        self._write({"method": "notifications/initialized"})
        self.call("register")
        self.heard = ""
        self.thread = threading.Thread(target=self._answer, daemon=True)
        self.thread.start()

    def call(self, tool: str, **given: str) -> str:
        result = self._request("tools/call", {"name": tool, "arguments": given})
        return "".join(part["text"] for part in result["content"])

    def _answer(self) -> None:
        try:
            while not sent_by(self.heard):
                self.heard = self.call("wait_for_messages")
            self.call("send_message", recipient=sent_by(self.heard), content=ANSWER)
        except (EOFError, OSError) as why:  # it was closed: nobody wrote to it
            self.heard += f"({why})"

    def _request(self, method: str, params: dict) -> dict:
        self.last += 1
        self._write({"id": self.last, "method": method, "params": params})
        for line in self.server.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.last:
                return answer["result"]
        raise EOFError(f"the peer's server ended before it answered {method}")

    def _write(self, message: dict) -> None:
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.server.stdin.flush()

    def close(self) -> None:
        self.server.kill()
        self.server.wait()


def sent_by(inbox: str) -> str:
    return sender(inbox, QUESTION)


@contextmanager
def _served(stage: Stage, transport: str, token: bool) -> Iterator[str]:
    """The address by which `ada` comes: with a token, which must then be found nowhere, or with the name in it."""
    secret = ""
    if token:
        secret = stage.run(stage.bin, "token", "add", "ada").split()[0]
        stage.said.pop()
        expect(secret.startswith("tt_"), "`token add` does not begin with the token")
        stage.env[VARIABLE] = secret
    else:
        stage.env.pop(VARIABLE, None)
    peer = None
    try:
        with Served(stage.bin, stage.project, stage.env, transport) as served:
            peer = Peer(stage)
            yield served.url if token else f"{served.url}?name=ada"
        peer.thread.join(5)
        expect(sent_by(peer.heard) == "ada", f"the peer heard nothing of `ada`: {peer.heard}")
    finally:
        if peer:
            peer.close()
    if secret:
        _expect_kept(stage, secret)


def _asks(stage: Stage, start: Callable[..., Session]) -> None:
    """The question, by a model that follows its script."""
    question = call("send_message", recipient="peer", content=QUESTION)
    session = start(question, call("wait_for_messages"), say("done")).wait()
    expect(me(session[0]) == "ada" and sent(session[0]), "the client could not write as `ada`")
    expect(sender(session[1], ANSWER) == "peer", "the client did not get the answer")
    shown = json.dumps(session.model.requests)
    expect("send_message" in shown and "wait_for_messages" in shown, "the tools are not shown to the model")


def _asks_by_script(stage: Stage, transport: str, *command: object, last: str = "") -> None:
    """The question, by a script that has a package of the protocol: with a token."""
    with _served(stage, "streamable-http" if transport == "http" else "sse", token=True) as url:
        stage.run(*command, transport, url, *([last] if last else []))


def _expect_kept(stage: Stage, secret: str) -> None:
    """The token is in no file, the logs, the table and the client's home among them, and no model was shown it."""
    for path in stage.root.rglob("*"):
        if path.is_file() and secret.encode() in path.read_bytes():
            expect(False, f"the token is in {path.relative_to(stage.root)}")
    expect(secret not in stage.transcript(), "the token was printed")
    for session in stage.sessions:
        expect(secret not in json.dumps(session.model.requests), f"the model of {session.name} was shown the token")
