"""The model of scripted_model.py in the protocols of further clients.

    POST /v1/chat/completions                    opencode and Copilot CLI, the chat protocol of OpenAI
    POST /v1beta/models/M:streamGenerateContent  Gemini CLI, the protocol of Google
"""

import json
import re
import uuid
from typing import Any

from scripted_model import SERVER, ScriptedModel, Step, _text, say

# What each client calls our tools. Source: Gemini CLI 0.61.0, opencode 1.18.33, Copilot CLI 1.0.102.
NAMES = {"gemini": f"mcp_{SERVER}_", "opencode": f"{SERVER}_", "copilot": f"{SERVER}-"}


class OtherModel(ScriptedModel):
    def __init__(self, client: str, steps: list[Step]):
        super().__init__(steps)
        self.client = client

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any] | list[dict[str, Any]]:
        if path.endswith("/chat/completions"):
            return self.chat(request)
        if "generateContent" in path or "GenerateContent" in path:
            answer = self.content(request)
            return [answer] if "stream" in path else answer
        return {"totalTokens": 1}

    def stream(self, events: list[dict[str, Any]]) -> str:
        """Without names of events; the chat protocol ends with a word of its own."""
        end = "" if self.client == "gemini" else "data: [DONE]\n\n"
        return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + end

    def _tool(self, step: Step) -> str:
        return NAMES[self.client] + step.name if step.kind == "call" else step.name

    def chat(self, request: dict[str, Any]) -> dict[str, Any] | list[dict[str, Any]]:
        """`messages` holds turns; a result is a turn of the role `tool`."""
        turns = request.get("messages", [])
        for turn in turns:
            if turn["role"] == "tool":
                self._note(turn["tool_call_id"], _text(turn["content"]))
        if request.get("tools"):
            step = self._next(request, sum(turn["role"] == "assistant" for turn in turns))
        else:
            step = say("ok")  # a title for the session
        if step.kind == "say":
            message, reason = {"role": "assistant", "content": step.name}, "stop"
        else:
            function = {"name": self._tool(step), "arguments": json.dumps(step.input)}
            calls = [{"index": 0, "id": step.id, "type": "function", "function": function}]
            message, reason = {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
        base = {"id": f"chat_{uuid.uuid4().hex[:8]}", "created": 1, "model": request.get("model")}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
        base["object"] = "chat.completion.chunk"
        return [
            {**base, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**base, "choices": [], "usage": usage},
        ]

    def content(self, request: dict[str, Any]) -> dict[str, Any]:
        """`contents` holds turns; a result is a part of a user's turn. Calls have no ids: the nth result is that of
        the nth call."""
        turns = request.get("contents", [])
        parts = [part for turn in turns for part in turn.get("parts", [])]
        results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        called = [step for step in self.steps if step.kind != "say"]
        for step, result in zip(called, results):
            self._note(step.id, _unwrapped(result))
        if request.get("tools"):
            step = self._next(request, sum(turn.get("role") == "model" for turn in turns))
        else:
            step = say("{}")  # a question of the client's own, such as which model to use
        if step.kind == "say":
            part: dict[str, Any] = {"text": step.name}
        else:
            part = {"functionCall": {"name": self._tool(step), "args": step.input}}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return {"candidates": [candidate], "usageMetadata": usage}


def _unwrapped(result: Any) -> str:
    """Gemini CLI hands a result over as `output` or `error`, the first between two tags."""
    text = result.get("output", result.get("error", "")) if isinstance(result, dict) else result
    text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return re.sub(r"\A\s*<untrusted_context>\n?|\n?</untrusted_context>\s*\Z", "", text)
