"""What is shown with Gemini CLI, opencode and Copilot CLI: each of them and another vendor's agent at one table.

They run only where they are asked for: `tests/clients/run gemini`, or `--all`.
"""

import json
import re

from cases import case
from drive import Session, Stage, expect, me, sender, sent
from other_models import OtherModel
from scripted_model import SERVER, Step, call, say

OTHERS = ("gemini", "opencode", "copilot")


@case("gemini node claude")
def gemini_writes_to_claude(stage: Stage) -> None:
    _writes(stage, "gemini", "claude")


@case("opencode codex")
def opencode_writes_to_codex(stage: Stage) -> None:
    _writes(stage, "opencode", "codex")


@case("copilot claude")
def copilot_writes_to_claude(stage: Stage) -> None:
    _writes(stage, "copilot", "claude")


def _writes(stage: Stage, client: str, vendor: str) -> None:
    """It asks, is told by the badge that there is an answer, reads it, and waits for a second one."""
    _configure(stage, client)
    question, answer, more = "Which port does the test server use?", "It is 8741.", "And 8742 for the web."
    asked = _start(
        stage, client,
        call("register", role="asker"),
        call("send_message", after=lambda: answers.done(0), recipient=f"{vendor}-1", content=question),
        call("heartbeat", after=lambda: answers.done(2), note="still here"),
        call("get_messages"),
        call("wait_for_messages"),
        say("I have the answer"),
    )
    answers = (stage.claude if vendor == "claude" else stage.codex)(
        call("register"),
        call("get_messages", after=lambda: asked.done(1)),
        call("send_message", content=answer, reply_to=lambda: int(sent(asked[1]))),
        call("send_message", after=lambda: asked.model.steps[4].id, recipient=f"{client}-1", content=more),
        say("answered"),
    )
    asked.wait(), answers.wait()
    expect(me(asked[0]) == f"{client}-1", f"it is not `{client}-1`")
    expect(re.search(rf"sent #\d+ to `?{vendor}-1`?: active", asked[1]), f"it is not told that {vendor}-1 is active")
    expect(sender(answers[1], question) == f"{client}-1", f"the question does not come from `{client}-1`")
    badge = f"{SERVER}: 1 unread message ({vendor}-1): call get_messages"
    expect(badge in asked[2].splitlines(), "there was no badge")
    expect(sender(asked[3], answer) == f"{vendor}-1", "the answer was not read")
    expect(f"reply to #{sent(asked[1])}" in asked[3], "the answer is not marked as a reply")
    expect(sender(asked[4], more) == f"{vendor}-1", "the wait did not bring the second answer")
    members = stage.members()
    expect(members == {"human", f"{client}-1", f"{vendor}-1"}, f"the members are {sorted(members)}")


def _configure(stage: Stage, client: str) -> None:
    """The project's file for this client. Copilot CLI reads the `.mcp.json` that is there already."""
    if client == "gemini":
        stage.run(stage.bin, "init", "--yes", "--client", "gemini")
        stage.said.clear()
    elif client == "opencode":
        entry = {"type": "local", "command": [SERVER, "serve"], "enabled": True}
        (stage.project / "opencode.json").write_text(json.dumps({"mcp": {SERVER: entry}}))


def _start(stage: Stage, client: str, *steps: Step) -> Session:
    """As a person runs it unattended, who trusts the folder and allows the tools."""
    model = OtherModel(client, list(steps))
    program = str(stage.clients[client])
    if client == "gemini":
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"disableAutoUpdate": True},
                    "privacy": {"usageStatisticsEnabled": False}}
        file = stage.home / ".gemini" / "settings.json"
        file.parent.mkdir()
        file.write_text(json.dumps(settings))
        env = {"GEMINI_API_KEY": "not-a-key", "GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        node = str(stage.clients["node"])
        command = [node, program, "-p", "go", "-m", "gemini-2.5-pro", "--approval-mode", "yolo"]
    elif client == "opencode":
        options = {"baseURL": f"{model.url}/v1", "apiKey": "not-a-key"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "scripted", "options": options,
                    "models": {"m": {"name": "m", "tool_call": True}}}
        config = {"model": "scripted/m", "small_model": "scripted/m", "provider": {"scripted": provider}}
        env = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
               "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_CONFIG_CONTENT": json.dumps(config)}
        command = [program, "run", "go"]
    else:
        env = {"COPILOT_ALLOW_ALL": "true", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
               "COPILOT_PROVIDER_BASE_URL": f"{model.url}/v1", "COPILOT_PROVIDER_API_KEY": "not-a-key",
               "COPILOT_MODEL": "gpt-5.5"}
        command = [program, "-p", "go"]
    return stage._start(client, command, env, None, model)
