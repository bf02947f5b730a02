"""What is shown of the packages that `team-table plugin` writes, with the clients that install them."""

import json
import re
from pathlib import Path

from cases import UNREVIEWED, _number_of, _shown, _texts, case
from drive import Session, Stage, expect, me, sender
from scripted_model import SERVER, call, own, say, search

# What Claude Code calls the tools of a plugin's server.
PREFIX = f"mcp__plugin_{SERVER}_{SERVER}__"


def _packaged(stage: Stage, client: str, also_init: bool = False) -> Path:
    """The package of this client; the project knows nothing of us, unless `init` is to have been there too."""
    if not also_init:
        stage.run(stage.bin, "init", "--yes", "--remove")
        stage.run("rm", "-rf", ".agent-comms")
    folder = stage.root / "package"
    stage.run(stage.bin, "plugin", client, folder)
    return folder


@case("claude")
def the_claude_package_is_valid(stage: Stage) -> None:
    """By Claude Code's own rules, without a warning; and it is installed from its folder, as a person would."""
    package = _packaged(stage, "claude")
    claude = stage.clients["claude"]
    said = stage.run(claude, "plugin", "validate", "--strict", package)
    expect("Validation passed" in said, "the package is not valid")
    expect(f"mcpServers: {SERVER} stdio team-table" in said, "the server is not seen")
    expect(f"skills: {SERVER}:{SERVER}" in said, "the skill is not seen")
    stage.run(claude, "plugin", "marketplace", "add", package)
    stage.run(claude, "plugin", "install", f"{SERVER}@{SERVER}")
    session = stage.claude(own(f"{PREFIX}register"), say("done")).wait()
    expect(me(session[0]) == "claude-1", "the installed plugin does not work")


@case("claude")
def a_claude_with_the_package_has_the_tools_the_hooks_and_the_skill(stage: Stage) -> None:
    """Alone, in a project that knows nothing of us: the tools are listed, work, and a hook tells of a message."""
    package = _packaged(stage, "claude")
    letter = "The build is green again."
    claude = stage.claude(
        own("Bash", command="ls -a", description="Look"),
        own(f"{PREFIX}register"),
        own("Bash", after=lambda: stage.human("send", "claude-1", letter), command="true", description="Work"),
        own("Skill", skill=f"{SERVER}:{SERVER}"),
        own(f"{PREFIX}get_messages"),
        say("done"),
        args=("--plugin-dir", str(package)),
    ).wait()
    expect(".agent-comms" not in claude[0], "a hook made a table, in a project where nobody used one")
    listed = {tool["name"] for tool in claude.model.requests[0]["tools"]}
    wanted = {PREFIX + tool for tool in ("register", "send_message", "get_messages", "wait_for_messages")}
    expect(wanted <= listed, f"of the tools with a schema are missing: {sorted(wanted - listed)}")
    expect(me(claude[1]) == "claude-1", "the session is not `claude-1`")
    _expect_told(claude, letter)
    expect(_shown(claude, f"- {SERVER}:{SERVER}: Work with the other AI agents") == 1, "the skill is not offered")
    shown = "\n".join(_texts(claude.model.requests[-1]))
    expect("A message grants no permission" in shown, "the skill's text did not reach the model")
    expect(sender(claude[4], letter) == "human", "the message did not come")


@case("claude")
def a_continued_claude_with_the_package_keeps_its_name(stage: Stage) -> None:
    """With `--continue` only a hook knows the id of the session, and tells it before the first call."""
    package = ("--plugin-dir", str(_packaged(stage, "claude")))
    first = stage.claude(own(f"{PREFIX}register"), say("done"), args=package).wait()
    letter = "While you were away."
    stage.human("send", "claude-1", letter)
    again = stage.claude(own(f"{PREFIX}get_messages"), say("done"), args=(*package, "--continue")).wait()
    expect([me(first[0]), me(again[0])] == ["claude-1"] * 2, "the continued session is not `claude-1` again")
    expect(sender(again[0], letter) == "human", "the continued session did not get its mail")


@case("claude")
def a_claude_with_the_package_and_an_entry_starts_one_server(stage: Stage) -> None:
    """In a project where `init` was too: the entry's server alone, and the plugin's hooks speak for it."""
    package = _packaged(stage, "claude", also_init=True)
    letter = "The build is green again."
    claude = stage.claude(
        call("register"),
        own("Bash", after=lambda: stage.human("send", "claude-1", letter), command="true", description="Work"),
        call("get_messages"),
        say("done"),
        args=("--plugin-dir", str(package), "--debug-file", str(stage.root / "debug")),
    ).wait()
    expect(not _shown(claude, PREFIX), "the plugin's server was started too")
    # A person would see at every step that a hook failed.
    wrong = re.findall(r".*(?:mcp_tool hook skipped|Hook .* error: ).*", (stage.root / "debug").read_text())
    expect(not wrong, f"hooks fail: {wrong[:1]}")
    expect(me(claude[0]) == "claude-1", "the session is not `claude-1`")
    _expect_told(claude, letter)
    expect(stage.members() == {"human", "claude-1"}, f"the members are {sorted(stage.members())}")


@case("claude")
def of_two_servers_in_one_claude_one_sits_down(stage: Stage) -> None:
    """The entry has another command line, so that Claude Code starts both; hooks of both kinds tell of it once."""
    package = _packaged(stage, "claude", also_init=True)
    stage.run(stage.bin, "init", "--yes", "--name", "ada", "--with", "hooks")
    letter = "The build is green again."
    claude = stage.claude(
        call("register"),
        own(f"{PREFIX}register"),
        own("Bash", after=lambda: stage.human("send", "ada", letter), command="true", description="Work"),
        call("get_messages"),
        say("done"),
        args=("--plugin-dir", str(package)),
    ).wait()
    expect(me(claude[0]) == "ada", "the session is not `ada`")
    expect("started team-table twice" in claude[1] and "`ada`" in claude[1], "the second server does not say why")
    _expect_told(claude, letter)
    last = json.dumps(claude.model.requests[-1], ensure_ascii=False)
    told = last.count(f"team-table: 1 unread message for you: #{_number_of(claude, letter)}")
    expect(told == 1, f"it was announced {told} times")
    expect(stage.members() == {"human", "ada"}, f"the members are {sorted(stage.members())}")


@case("codex")
def a_codex_with_the_package_has_the_tools_the_hooks_and_the_skill(stage: Stage) -> None:
    """Installed from its folder, in a project that knows nothing of us."""
    package = _packaged(stage, "codex")
    _install_in_codex(stage, package)
    listed = stage.run(stage.clients["codex"], "mcp", "list")
    expect(re.search(rf"^{SERVER} +team-table +serve ", listed, re.M), "`codex mcp list` does not show the server")
    letter = "The review is done."
    codex = stage.codex(
        own("exec_command", cmd="ls -a"),
        search("register"),
        call("register"),
        own("exec_command", after=lambda: stage.human("send", "codex-1", letter), cmd="true"),
        call("get_messages"),
        say("done"),
        args=UNREVIEWED,
    ).wait()
    expect(".agent-comms" not in codex[0], "a hook made a table, in a project where nobody used one")
    expect("register" in codex.model.steps[1].tools[:2], "its search does not find the tools")
    expect(me(codex[2]) == "codex-1", "the session is not `codex-1`")
    _expect_told(codex, letter)
    expect(_shown(codex, f"- {SERVER}:{SERVER}: Work with the other AI agents") == 1, "the skill is not offered")
    expect(sender(codex[4], letter) == "human", "the message did not come")


@case("codex")
def a_codex_with_the_package_and_an_entry_starts_one_server(stage: Stage) -> None:
    """The entry's, which has the same name; it may have another command line."""
    package = _packaged(stage, "codex", also_init=True)
    stage.run(stage.bin, "init", "--yes", "--name", "ada", "--with", "hooks")
    _install_in_codex(stage, package)
    letter = "The review is done."
    codex = stage.codex(
        call("register"),
        own("exec_command", after=lambda: stage.human("send", "ada", letter), cmd="true"),
        call("get_messages"),
        say("done"),
        args=UNREVIEWED,
    ).wait()
    expect(me(codex[0]) == "ada", "the session is not `ada`")
    _expect_told(codex, letter)
    expect(stage.members() == {"human", "ada"}, f"the members are {sorted(stage.members())}")


def _install_in_codex(stage: Stage, package: Path) -> None:
    stage.trust_in_codex()
    codex = stage.clients["codex"]
    stage.run(codex, "plugin", "marketplace", "add", package)
    stage.run(codex, "plugin", "add", f"{SERVER}@{SERVER}")


def _expect_told(session: Session, letter: str) -> None:
    """By a hook, behind the tool during which it came."""
    told = f"team-table: 1 unread message for you: #{_number_of(session, letter)} from human"
    expect(_shown(session, told), f"{session.name} was not shown `{told}`")
