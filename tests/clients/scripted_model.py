"""A model that follows a script, on loopback, for real clients: no account, no network, and no chance in it.

A client sends the whole conversation so far to its model and gets back the next thing to do. This model answers with
the next step of its script, whatever it was told, and keeps the results of the tools as the client hands them over,
which is to say: what a model would have seen.

    POST /v1/messages    Claude Code, the Messages protocol of Anthropic
    POST /v1/responses   Codex, the Responses protocol of OpenAI

Both stream; other_models.py has the protocols of further clients. The position in the script is the number of answers
in the conversation, less those that were there already when the client started (a resumed session), so that a request
that is sent twice gets the same answer twice.
"""

import json
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SERVER = "team-table"  # the name of the server in the files that `init` writes
PATIENCE = 40  # seconds that a step waits for its condition


@dataclass
class Step:
    """One answer of the model."""

    kind: str  # call: a tool of ours; own: a tool of the client's; search: Codex's search for tools; say: text
    name: str
    input: dict[str, Any] = field(default_factory=dict)  # a value may be a function, called when its turn comes
    after: Callable[[], Any] | None = None  # answer only when this is true
    id: str = ""
    result: str | None = None  # what the client handed to the model
    tools: list[str] = field(default_factory=list)  # what a search found, best first

    def seen(self) -> str:
        return ", ".join(self.tools) if self.kind == "search" else self.result or ""

    def __str__(self) -> str:
        given = f" {json.dumps(self.input, default=lambda _: '...')}" if self.input else ""
        return f"{self.kind} {self.name}{given}"


def call(tool: str, after: Callable[[], Any] | None = None, **given: Any) -> Step:
    return Step("call", tool, given, after)


def own(tool: str, after: Callable[[], Any] | None = None, **given: Any) -> Step:
    return Step("own", tool, given, after)


def search(query: str) -> Step:
    return Step("search", query)


def say(text: str, after: Callable[[], Any] | None = None) -> Step:
    return Step("say", text, {}, after)


class ScriptedModel:
    def __init__(self, steps: list[Step]):
        self.steps = steps
        self.requests: list[dict[str, Any]] = []  # those of the conversation, not the small ones for titles and such
        self.complaint = ""  # why the script could not be followed
        self._before: int | None = None  # answers that were there when the client started
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any] | list[dict[str, Any]]:
        """A list is streamed, one event each."""
        if path.endswith("/messages"):
            return self.messages(request)
        if path.endswith("/responses"):
            return self.responses(request)
        return {"input_tokens": 1}  # /v1/messages/count_tokens, and whatever else a client may ask

    def stream(self, events: list[dict[str, Any]]) -> str:
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

    # What all protocols share

    def _note(self, call_id: str, result: str, tools: list[str] | None = None) -> None:
        for step in self.steps:
            if step.id and step.id == call_id and step.result is None:
                step.result, step.tools = result, tools or []

    def _next(self, request: dict[str, Any], answers: int) -> Step:
        with self._lock:
            self.requests.append(request)
            if self._before is None:
                self._before = answers
            position = answers - self._before
        if not 0 <= position < len(self.steps):
            return say("done")
        step = self.steps[position]
        try:
            self._prepare(step)
        except Exception as why:  # the client gets an answer all the same, so that it ends
            self.complaint = f"step {position + 1}, `{step}`: {why}"
            return say("I give up")
        return step

    def _prepare(self, step: Step) -> None:
        limit = time.monotonic() + PATIENCE
        while step.after and not step.after():
            if time.monotonic() > limit:
                raise TimeoutError(f"what it waits for did not come in {PATIENCE} s")
            time.sleep(0.05)
        step.input = {name: value() if callable(value) else value for name, value in step.input.items()}
        step.id = step.id or f"call_{uuid.uuid4().hex[:16]}"

    # Claude Code

    def messages(self, request: dict[str, Any]) -> dict[str, Any] | list[dict[str, Any]]:
        """`messages` holds turns; a result is a block of a user's turn. Our tools are named `mcp__team-table__NAME`."""
        turns = request.get("messages", [])
        for block in (block for turn in turns if isinstance(turn["content"], list) for block in turn["content"]):
            if block.get("type") == "tool_result":
                self._note(block["tool_use_id"], _text(block.get("content")))
        if request.get("tools"):
            step = self._next(request, sum(turn["role"] == "assistant" for turn in turns))
        else:
            step = say("ok")  # a title for the session, a check of the quota
        if step.kind == "say":
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": step.name}
            whole, stop = {"type": "text", "text": step.name}, "end_turn"
        else:
            name = f"mcp__{SERVER}__{step.name}" if step.kind == "call" else step.name
            block = {"type": "tool_use", "id": step.id, "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step.input)}
            whole, stop = {**block, "input": step.input}, "tool_use"
        usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {
            "id": f"msg_{uuid.uuid4().hex[:12]}", "type": "message", "role": "assistant",
            "model": request.get("model"), "stop_sequence": None, "usage": usage,
        }
        if not request.get("stream"):
            return {**message, "content": [whole], "stop_reason": stop}
        return [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]

    # Codex

    def responses(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """`input` is one flat list. Our tools have a `namespace`, in which `-` has become `_`, and are not listed: a
        model has to find them first, by an item of the type `tool_search_call`."""
        items = request.get("input", [])
        for item in items:
            if item.get("type") == "function_call_output":
                # Codex puts two lines before a result of ours: `Wall time: 0.1 seconds`, `Output:`
                self._note(item["call_id"], re.sub(r"\AWall time: .*\nOutput:\s?", "", _text(item.get("output"))))
            elif item.get("type") == "tool_search_output":
                found = json.dumps(item.get("tools"))
                self._note(item["call_id"], found, _tool_names(item.get("tools")))
        ours = ("function_call", "tool_search_call")
        step = self._next(request, sum(i.get("type") in ours or i.get("role") == "assistant" for i in items))
        if step.kind == "say":
            content = [{"type": "output_text", "text": step.name, "annotations": []}]
            item = {"type": "message", "role": "assistant", "content": content}
        elif step.kind == "search":
            item = {"type": "tool_search_call", "call_id": step.id, "execution": "client", "status": "completed",
                    "arguments": {"query": step.name}}
        else:
            item = {"type": "function_call", "call_id": step.id, "name": step.name, "arguments": json.dumps(step.input)}
            if step.kind == "call":
                item["namespace"] = f"mcp__{SERVER.replace('-', '_')}"
        item["id"] = f"item_{uuid.uuid4().hex[:12]}"
        response = {
            "id": f"resp_{uuid.uuid4().hex[:12]}", "object": "response", "created_at": 1, "status": "completed",
            "model": request.get("model"), "output": [item],
            "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
                      "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2},
        }
        return [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]


def _text(content: Any) -> str:
    """A result is a string or a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _tool_names(found: Any) -> list[str]:
    """The names of the tools in a search result, in its order; those of one namespace stand together in a group."""
    names = []
    for entry in found or []:
        if isinstance(entry.get("tools"), list):
            names += _tool_names(entry["tools"])
        else:
            names.append(re.sub(r"^mcp__\w+?__", "", entry.get("name", "")))
    return names


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(b"", "application/json")

        def do_GET(self) -> None:
            self._answer(b'{"object": "list", "data": [], "models": []}', "application/json")

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            answer = model.answer(self.path.split("?")[0], request)
            if isinstance(answer, list):
                self._answer(model.stream(answer).encode(), "text/event-stream")
            else:
                self._answer(json.dumps(answer).encode(), "application/json")

        def _answer(self, body: bytes, kind: str) -> None:
            try:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                pass  # the client has gone

    return Handler
