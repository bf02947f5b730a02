"""What is shown with the real clients: one function, one case. The scripts say what a model does, step by step."""

import json
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from drive import Session, Stage, expect, me, new_session_id, sender, sent, task
from scripted_model import SERVER, Step, call, own, say, search

HERE = Path(__file__).parent


@dataclass
class Case:
    name: str
    needs: list[str]
    run: Callable[[Stage], None]


CASES: list[Case] = []


def case(needs: str) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """A case is named by its function; `needs` names the clients in it."""

    def add(run: Callable[[Stage], None]) -> Callable[[Stage], None]:
        CASES.append(Case(run.__name__.replace("_", "-"), needs.split(), run))
        return run

    return add


# Messages


@case("claude codex")
def claude_writes_to_codex(stage: Stage) -> None:
    """Claude Code writes to Codex, waits, and reads the answer; both sit there at the same time."""
    question, answer = "Which port does the test server use?", "It is 8741; see tests/server.rs."
    codex = stage.codex(
        call("register", role="builder"),
        call("get_messages", after=lambda: claude.done(0)),
        call("send_message", after=lambda: claude.model.steps[1].id, content=answer,
             reply_to=lambda: int(sent(claude[0]))),
        say("answered"),
    )
    claude = stage.claude(
        call("send_message", after=lambda: codex.done(0), recipient="codex-1", content=question),
        call("wait_for_messages"),
        call("message_status", message_id=lambda: int(sent(claude[0]))),
        say("I have the answer"),
    )
    claude.wait(), codex.wait()
    expect(me(codex[0]) == "codex-1", "Codex is not `codex-1`")
    expect(me(claude[0]) == "claude-1", "Claude Code is not `claude-1`")
    expect(re.search(r"sent #\d+ to `?codex-1`?: active", claude[0]), "Claude Code is not told that Codex is active")
    expect(sender(codex[1], question) == "claude-1", "Codex does not see the question as one of `claude-1`")
    expect(sender(claude[1], answer) == "codex-1", "Claude Code does not see the answer as one of `codex-1`")
    expect(f"reply to #{sent(claude[0])}" in claude[1], "the answer is not marked as a reply")
    expect(re.search(r"\bread\b", claude[2]), "the question does not count as read")


# How a client, or the server, refuses a call.
REFUSED = re.compile(r"requires approval|unsupported call|haven't granted|^(error|hint):", re.M)


@case("codex")
def codex_calls_every_tool(stage: Stage) -> None:
    """`codex exec` asks nobody: what it would have to ask for is refused."""
    codex = stage.codex(
        call("register", role="builder", capabilities=["rust"], note="trying every tool"),
        call("list_members"),
        call("heartbeat", note="still trying"),
        call("send_message", recipient="human", content="Shall I go on?"),
        call("broadcast", content="I try every tool."),
        call("get_messages", after=lambda: stage.human("send", "codex-1", "Go on.")),
        call("wait_for_messages", timeout_seconds=1),
        call("message_status", message_id=lambda: int(sent(codex[3]))),
        *_board(),
        call("deregister"),
        say("done"),
    )
    codex.wait()
    called = {step.name for step in codex.model.steps if step.kind == "call"}
    uncalled = {tool["name"] for tool in _server_says(stage)["tools"]} - called
    expect(not uncalled, f"the script leaves out {sorted(uncalled)}")
    for step in codex.model.steps:
        expect(not REFUSED.search(step.seen()), f"`{step}` failed")
    expect(me(codex[0]) == "codex-1" and "(you)" in codex[1], "Codex does not find itself")
    expect(sent(codex[3]), "Codex could not send")
    expect(sender(codex[5], "Go on.") == "human", "Codex does not see the human's message")
    expect("nothing new" in codex[6], "a wait in vain does not say so")
    _expect_board([step.seen() for step in codex.model.steps[8:16]])
    expect("has left" in codex[16], "Codex could not leave")


@case("claude")
def claude_calls_the_tools_of_the_board(stage: Stage) -> None:
    """`claude -p` asks nobody either. It is not told the schemas of these tools before they are called."""
    claude = stage.claude(*_board(), say("done")).wait()
    for step in claude.model.steps:
        expect(not REFUSED.search(step.seen()), f"`{step}` failed")
    _expect_board([step.seen() for step in claude.model.steps[:8]])


@case("claude codex")
def claude_gives_codex_a_task(stage: Stage) -> None:
    """Claude Code creates a task for Codex, Codex claims it and says what came of it, and Claude Code is told."""
    result = "src/parse.rs: an empty file is an empty list"
    codex = stage.codex(
        call("register"),
        call("get_messages", after=lambda: claude.done(0)),
        call("claim_task", task_id=lambda: task(claude[0])),
        call("update_task", task_id=lambda: task(claude[0]), status="done", result=result),
        say("done"),
    )
    claude = stage.claude(
        call("create_task", after=lambda: codex.done(0), title="Fix the parser", description="Empty files fail.",
             assignee="codex-1"),
        call("get_messages", after=lambda: codex.done(3)),
        call("list_tasks", task_id=lambda: task(claude[0])),
        say("done"),
    )
    claude.wait(), codex.wait()
    number = task(claude[0])
    expect(number, "Claude Code could not create the task")
    expect(re.search(rf"T{number} `Fix the parser` .*assigned to you by claude-1", codex[1]), "Codex is not told of it")
    expect(f"T{number} is yours" in codex[2] and "| Empty files fail." in codex[2], "Codex did not get the task")
    expect(f"T{number} is done" in codex[3] and "told claude-1" in codex[3], "Codex could not end the task")
    notice = f"T{number} `Fix the parser` is done, says codex-1"
    expect(sender(claude[1], notice) == "team-table", "Claude Code has no notice that the task is done")
    expect(f"| | {result}" in claude[1].splitlines(), "the notice does not say what came of the task")
    expect(f"T{number} done" in claude[2] and result in claude[2], "the board does not show the task as done")


@case("claude codex")
def names_in_an_agents_own_shell(stage: Stage) -> None:
    """`team-table send`, run by an agent in its own shell, speaks as that agent."""
    claude = stage.claude(
        call("register"),
        own("Bash", command="team-table send human 'Sent from the shell of Claude Code.'", description="Send"),
        say("done"),
    ).wait()
    # The sandbox is told to leave the machine's own temporary folder alone: it would make empty folders there.
    narrow = ("--sandbox", "workspace-write", "-c", "sandbox_workspace_write.exclude_slash_tmp=true")
    codex = stage.codex(
        call("register"),
        own("exec_command", cmd="team-table send human 'Sent from the shell of Codex.'"),
        say("done"),
        args=narrow,
    ).wait()
    expect(sent(claude[1]), "Claude Code's shell could not send")
    expect(sent(codex[1]), "Codex's shell could not send")
    expect([me(claude[0]), me(codex[0])] == ["claude-1", "codex-1"], "the names are not `claude-1` and `codex-1`")
    inbox = stage.human("inbox", "--peek")
    for name, client in (("claude-1", "Claude Code"), ("codex-1", "Codex")):
        who = sender(inbox, f"Sent from the shell of {client}.")
        expect(who == name, f"what came from the shell of {client} is from `{who}`")


# Hooks

# Codex asks a person to review hooks; a test is none.
UNREVIEWED = ("--dangerously-bypass-hook-trust",)


def _shown(session: Session, text: str) -> int:
    """The first request to the model in which this stands, from 1; 0 if it was never shown."""
    for number, request in enumerate(session.model.requests, 1):
        if text in json.dumps(request, ensure_ascii=False):
            return number
    return 0


def _expect_announced(session: Session, sender: str, letter: str, before_stop: bool = False) -> None:
    number = _number_of(session, letter)
    told = f"team-table: {'before you stop: ' if before_stop else ''}1 unread message for you: #{number} from {sender}"
    expect(_shown(session, told), f"{session.name} was not shown `{told}`")
    expect(not _shown(session, letter), f"{session.name} was shown the letter itself")


def _number_of(session: Session, letter: str) -> str:
    """By the log, which shows every message."""
    log = session.stage.run(session.stage.bin, "log", "--json")
    lines = [json.loads(line) for line in log.splitlines()]
    return str(next(line["message"]["id"] for line in lines if (line.get("message") or {}).get("body") == letter))


@case("claude codex")
def a_message_is_announced_to_a_working_claude(stage: Stage) -> None:
    """Claude Code works and never calls `get_messages`; after its next tool it knows of Codex's message."""
    stage.install("hooks")
    letter = "The build is green again."
    codex = stage.codex(
        call("send_message", after=lambda: claude.done(0), recipient="claude-1", content=letter),
        say("sent"),
    )
    claude = stage.claude(
        call("register"),
        own("Bash", after=lambda: codex.done(0), command="true", description="Work"),
        say("done"),
    )
    claude.wait(), codex.wait()
    _expect_announced(claude, "codex-1", letter)
    at = _shown(claude, "team-table: 1 unread message for you")
    expect(at == 3, f"it was announced in request {at} and not behind the tool")
    unread = stage.run(stage.bin, "inbox", "--as", "claude-1", "--peek")
    expect(sender(unread, letter) == "codex-1", "a hook marked it as read")


@case("claude codex")
def a_message_is_announced_to_a_working_codex(stage: Stage) -> None:
    """The same the other way round."""
    stage.install("hooks")
    letter = "The review is done."
    claude = stage.claude(
        call("send_message", after=lambda: codex.done(0), recipient="codex-1", content=letter),
        say("sent"),
    )
    codex = stage.codex(
        call("register"),
        own("exec_command", after=lambda: claude.done(0), cmd="true"),
        say("done"),
        args=UNREVIEWED,
    )
    claude.wait(), codex.wait()
    _expect_announced(codex, "claude-1", letter)


@case("claude codex")
def unread_mail_holds_a_claude_that_is_about_to_stop(stage: Stage) -> None:
    """It comes behind the last tool: the hook at the end holds the session once, and it reads."""
    stage.install("hooks")
    letter = "One thing more."
    codex = stage.codex(
        call("send_message", after=lambda: claude.done(0), recipient="claude-1", content=letter),
        say("sent"),
    )
    claude = stage.claude(
        call("register"),
        say("I am done", after=lambda: codex.done(0)),
        call("get_messages"),
        say("now I am"),
    )
    claude.wait(), codex.wait()
    expect(sender(claude[2], letter) == "codex-1", "Claude Code did not read the message before it stopped")
    expect(_shown(claude, "before you stop: 1 unread message"), "nothing held it")


@case("claude codex")
def unread_mail_holds_a_codex_that_is_about_to_stop(stage: Stage) -> None:
    stage.install("hooks")
    letter = "One thing more."
    claude = stage.claude(
        call("send_message", after=lambda: codex.done(0), recipient="codex-1", content=letter),
        say("sent"),
    )
    codex = stage.codex(
        call("register"),
        say("I am done", after=lambda: claude.done(0)),
        call("get_messages"),
        say("now I am"),
        args=UNREVIEWED,
    )
    claude.wait(), codex.wait()
    expect(sender(codex[2], letter) == "claude-1", "Codex did not read the message before it stopped")
    expect(_shown(codex, "before you stop: 1 unread message"), "nothing held it")


@case("claude")
def what_waits_is_announced_with_the_first_prompt(stage: Stage) -> None:
    """And what a session was told and did not read is there for the next one."""
    stage.install("hooks")
    session = new_session_id()
    stage.claude(call("register"), say("done"), args=("--session-id", session)).wait()
    letter = "While you were away."
    stage.human("send", "claude-1", letter)
    deaf = stage.claude(say("I do not read"), say("not even now"), args=("--resume", session)).wait()
    _expect_announced(deaf, "human", letter)
    expect(_shown(deaf, "team-table: 1 unread message for you") == 1, "it was not there with the prompt")
    again = stage.claude(call("get_messages"), say("done"), args=("--resume", session)).wait()
    expect(sender(again[0], letter) == "human", "the message was lost")


@case("claude codex")
def hooks_that_nobody_reviewed_lose_nothing(stage: Stage) -> None:
    """Codex does not run them then; the badge and the inbox are as ever."""
    stage.install("hooks")
    letter = "Do you hear me?"
    claude = stage.claude(
        call("send_message", after=lambda: codex.done(0), recipient="codex-1", content=letter),
        say("sent"),
    )
    codex = stage.codex(
        call("register"),
        call("heartbeat", after=lambda: claude.done(0)),
        call("get_messages"),
        say("done"),
    )
    claude.wait(), codex.wait()
    expect(not _shown(codex, "unread message for you"), "a hook ran that nobody reviewed")
    expect("1 unread message (claude-1)" in codex[1], "there was no badge")
    expect(sender(codex[2], letter) == "claude-1", "the message was lost")


@case("claude tmux")
def an_idle_claude_is_woken(stage: Stage) -> None:
    """In a terminal, where nobody types."""
    stage.install("hooks,wake")
    claude = stage.claude_in_terminal(call("register"), say("I am idle now"), call("get_messages"), say("read"))
    claude.type("go")
    claude.until("idle", lambda: "I am idle now" in claude.screen())
    time.sleep(3)
    letter = "Wake up, please."
    stage.human("send", "claude-1", letter)
    took = claude.until("awake", lambda: claude.done(2))
    expect(sender(claude[2], letter) == "human", "it did not read what it was woken for")
    expect(_shown(claude, "NOT USER INPUT"), "the model was not told that this came from nobody's hand")
    print(f"    woken after {took:.1f} s")


@case("codex tmux")
def an_idle_codex_is_woken(stage: Stage) -> None:
    stage.install("hooks,wake")
    codex = stage.codex_in_terminal(call("register"), say("I am idle now"), call("get_messages"), say("read"))
    codex.type("go")
    codex.until("idle", lambda: "I am idle now" in codex.screen())
    time.sleep(6)
    letter = "Wake up, please."
    stage.human("send", "codex-1", letter)
    took = codex.until("awake", lambda: codex.done(2))
    expect(sender(codex[2], letter) == "human", "it did not read what it was woken for")
    expect(_shown(codex, "[not from your user, but from the program team-table]"), "it does not say from whom it is")
    print(f"    woken after {took:.1f} s")


# Names


@case("claude")
def two_claudes_at_once(stage: Stage) -> None:
    """Two sessions from one `.mcp.json`, started together, get two names."""
    one = stage.claude(call("register"), say("done", after=lambda: two.done(0)))
    two = stage.claude(call("register"), say("done", after=lambda: one.done(0)))
    one.wait(), two.wait()
    names = {me(one[0]), me(two[0])}
    expect(names == {"claude-1", "claude-2"}, f"the names are {sorted(names)}")


@case("claude")
def a_resumed_claude_keeps_its_name(stage: Stage) -> None:
    """`--resume` finds the old name and its mail again, and a fresh session in between does not take the name."""
    session = new_session_id()
    first = stage.claude(call("register", note="the first one"), say("done"), args=("--session-id", session)).wait()
    letter = "For the one who was here."
    other = stage.claude(call("send_message", recipient="claude-1", content=letter), say("done")).wait()
    again = stage.claude(call("get_messages"), say("done"), args=("--resume", session)).wait()
    expect(me(first[0]) == "claude-1", "the first session is not `claude-1`")
    expect(me(other[0]) == "claude-2", "the fresh session in between is not `claude-2`")
    expect(me(again[0]) == "claude-1", "the resumed session is not `claude-1` again")
    expect(sender(again[0], letter) == "claude-2", "the resumed session did not get its mail")


@case("codex")
def a_resumed_codex_keeps_its_name(stage: Stage) -> None:
    """The same with `codex exec resume`. Codex names its thread with each call and not before, so a session that
    thinks for a while sits down under a new name first; its first call brings it back to the old one."""
    first = stage.codex(call("register", note="the first one"), say("done")).wait()
    letter = "For the one who was here."
    other = stage.codex(call("send_message", recipient="codex-1", content=letter), say("done")).wait()
    thread = re.search(r"session id: (\S+)", first.log.read_text())
    expect(thread, "Codex did not print the id of its session")
    again = stage.codex(
        call("get_messages", after=lambda: "codex-3" in stage.members()), say("done"), resume=thread.group(1)
    ).wait()
    expect([me(first[0]), me(other[0])] == ["codex-1", "codex-2"], "the first two are not `codex-1` and `codex-2`")
    expect(me(again[0]) == "codex-1", "the resumed session is not `codex-1` again")
    expect("codex-3" not in again[0], "the resumed session is told of its name for the time being")
    expect(sender(again[0], letter) == "codex-2", "the resumed session did not get its mail")
    expect(stage.members() == {"human", "codex-1", "codex-2"}, f"the members are {sorted(stage.members())}")


@case("claude")
def a_killed_server_loses_neither_name_nor_mail(stage: Stage) -> None:
    """Claude Code starts a dead server anew at the next call; what the model may not have seen comes again."""
    claude = stage.claude(
        call("register"),
        call("get_messages", after=lambda: stage.human("send", "claude-1", "Are you there?")),
        call("get_messages", after=lambda: stage.kill_servers()),
        say("done"),
    ).wait()
    expect(me(claude[0]) == "claude-1" and me(claude[2]) == "claude-1", "the name is not `claude-1` before and after")
    for step in (1, 2):
        expect(sender(claude[step], "Are you there?") == "human", f"the message is not in result {step + 1}")
    expect("(again)" in claude[2], "the second time is not marked as such")


@case("claude codex")
def an_agent_is_found_before_its_first_call(stage: Stage) -> None:
    """A session that has not called anything yet is a member some seconds after it began, and can be written to."""
    letter = "You have not said a word yet."
    for name, start in (("claude-1", stage.claude), ("codex-1", stage.codex)):

        def written() -> bool:
            return name in stage.members() and bool(stage.human("send", name, letter))

        session = start(call("get_messages", after=written), say("done")).wait()
        expect(me(session[0]) == name, f"the first result does not say: you are `{name}`")
        expect(session[0].count("you are") == 1, "the first result says who one is more than once")
        expect(sender(session[0], letter) == "human", f"`{name}` did not get the message")


# One table


@case("claude codex")
def one_table_from_everywhere(stage: Stage) -> None:
    """Started at the top, in a subdirectory and in a second worktree, all sit at one table."""
    deep = stage.project / "src" / "deep"
    deep.mkdir(parents=True)
    (deep / "file").write_text("")
    stage.commit()
    worktree = stage.root / "worktree"
    stage.git("worktree", "add", "--quiet", str(worktree))
    for folder in (deep, worktree, stage.project):
        where = folder.relative_to(stage.root)
        sessions = [
            start(call("send_message", recipient="human", content=f"I am in {where}."), say("done"), cwd=folder)
            for start in (stage.claude, stage.codex)
        ]
        for session in sessions:
            session.wait()
    inbox = stage.human("inbox", "--peek")
    for folder in (deep, worktree, stage.project):
        line = f"| I am in {folder.relative_to(stage.root)}."
        expect(inbox.splitlines().count(line) == 2, f"`{line}` did not come from both")
    tables = [str(path.relative_to(stage.root)) for path in stage.root.rglob("comms.db")]
    expect(tables == ["project/.agent-comms/comms.db"], f"the tables are {tables}")


@case("claude codex")
def a_look_at_the_server_leaves_no_member(stage: Stage) -> None:
    """`claude mcp list` starts the server and kills it at once; `codex mcp get` only reads the file."""
    stage.trust_in_claude()
    stage.trust_in_codex()
    listed = stage.run(stage.clients["claude"], "mcp", "list")
    expect(re.search(rf"{SERVER}: .*Connected", listed), "`claude mcp list` does not show the server as connected")
    got = stage.run(stage.clients["codex"], "mcp", "get", SERVER)
    expect("enabled: true" in got and "serve" in got, "`codex mcp get` does not show the server")
    expect(stage.members() == {"human"}, f"the members are {sorted(stage.members())}")
    seats = [path.name for path in (stage.project / ".agent-comms").rglob("seat-*")]
    expect(not [seat for seat in seats if re.search(r"claude|codex", seat)], f"a seat was left behind: {seats}")


# What a model is shown


LOADED = {"register", "send_message", "get_messages", "wait_for_messages"}


@case("claude")
def what_claude_shows_its_model(stage: Stage) -> None:
    """The instructions in full, and four tools with their schemas; the others by name, to be loaded when needed."""
    claude = stage.claude(say("done")).wait()
    server = _server_says(stage)
    request = claude.model.requests[0]
    shown = "\n".join(_texts(request))
    expect(server["instructions"] in shown, "the instructions are not shown in full")
    prefix = f"mcp__{SERVER}__"
    tools = {tool["name"].removeprefix(prefix): tool for tool in request["tools"] if tool["name"].startswith(prefix)}
    full = {name for name, tool in tools.items() if not tool.get("defer_loading")}
    expect(full == LOADED, f"the tools with a schema are {sorted(full)}")
    for tool in server["tools"]:
        expect(prefix + tool["name"] in shown or tool["name"] in tools, f"`{tool['name']}` is not named")
        if tool["name"] in LOADED:
            expect(tools[tool["name"]]["description"] == tool["description"], f"another text for `{tool['name']}`")


@case("codex")
def what_codex_shows_its_model(stage: Stage) -> None:
    """The first paragraph of the instructions, whole, and no tool of ours before a search."""
    codex = stage.codex(say("done")).wait()
    first = _server_says(stage)["instructions"].split("\n\n")[0]
    shown = "\n".join(_texts(codex.model.requests[0]))
    expect(first in shown, "the first paragraph is not shown whole")


# query -> the tool that should come first or second
QUERIES = {
    "inbox": "get_messages",
    "read my messages": "get_messages",
    "send message to another agent": "send_message",
    "who else is working here": "list_members",
    "wait for an answer": "wait_for_messages",
    "broadcast to all agents": "broadcast",
    "introduce myself": "register",
    "was my message read": "message_status",
    "tell the others what I work on": "heartbeat",
    "leave": "deregister",
    "search old messages": "get_messages",
    "task board": "list_tasks",
    "create a task": "create_task",
    "assign a task to another agent": "create_task",
    "what can I work on next": "list_tasks",
    "list open tasks": "list_tasks",
    "claim a task": "claim_task",
    "mark a task done": "update_task",
    "update task status": "update_task",
    "remember a decision for all agents": "share_context",
    "shared context": "share_context",
    "read shared decisions": "get_shared_context",
    "read shared context": "get_shared_context",
    "lock files before editing": "reserve_files",
    "reserve files": "reserve_files",
    "release file locks": "release_files",
    "unlock files": "release_files",
}


@case("codex")
def codex_finds_the_tools(stage: Stage) -> None:
    """Codex's own search, over names and descriptions, puts the right tool first or second.

    Tools of equal rank come in any order, so every query is asked some times over.
    """
    codex = stage.codex(*[search(query) for query in QUERIES for _ in range(5)], say("done")).wait()
    wrong = {}
    for step in codex.model.steps:
        wanted = QUERIES.get(step.name)
        if wanted and wanted not in step.tools[:2]:
            wrong[step.name] = f"`{step.name}` finds {', '.join(step.tools[:4]) or 'nothing'} and not `{wanted}`"
    expect(not wrong, "; ".join(wrong.values()))


# Other clients


@case("node inspector")
def inspector_strict(stage: Stage) -> None:
    """The inspector finds nothing that another client could not read."""
    node, inspector = stage.clients["node"], stage.clients["inspector"]
    said = stage.run(node, inspector, "--cli", stage.bin, "serve", "--method", "tools/list", "--strict")
    expect('"send_message"' in said, "the inspector does not list the tools")


@case("python-mcp-1")
def python_mcp_1(stage: Stage) -> None:
    stage.run(stage.clients["python-mcp-1"], HERE / "python_mcp_1.py", stage.bin, stage.project)


@case("python-mcp-2")
def python_mcp_2(stage: Stage) -> None:
    stage.run(stage.clients["python-mcp-2"], HERE / "python_mcp_2.py", stage.bin, stage.project)


@case("node typescript-sdk")
def typescript_sdk_1(stage: Stage) -> None:
    _typescript(stage, "typescript-sdk")


@case("node typescript-client")
def typescript_client_2(stage: Stage) -> None:
    _typescript(stage, "typescript-client")


def _typescript(stage: Stage, client: str) -> None:
    modules = stage.clients[client].parents[2]
    script = HERE / "typescript.cjs"
    stage.run(stage.clients["node"], script, client, stage.bin, stage.project, env={"NODE_PATH": str(modules)})


# Beside the cases


def _board() -> list[Step]:
    """One call of each tool that is not about members and messages, by whoever is alone at a new table."""
    return [
        call("create_task", title="Fix the parser", description="Empty files fail.", priority="high"),
        call("list_tasks", ready=True),
        call("claim_task"),
        call("update_task", task_id=1, status="done", result="src/parse.rs", comment="It was one line."),
        call("share_context", key="parser/empty", value="An empty file is an empty list."),
        call("get_shared_context", key="parser/empty"),
        call("reserve_files", paths=["src/parse.rs", "tests/**"], reason="the parser", minutes=5),
        call("release_files"),
    ]


def _expect_board(results: list[str]) -> None:
    """What `_board` brings."""
    created, listed, claimed, updated, shared, read, reserved, released = results
    expect(task(created) == 1, "the task was not created")
    expect(re.search(r"^T1 .*`Fix the parser`", listed, re.M), "the task is not on the board")
    expect("T1 is yours" in claimed, "the task was not claimed")
    expect("T1 is done" in updated, "the task was not done")
    expect("shared `parser/empty` as version 1" in shared, "the decision was not stored")
    expect("| An empty file is an empty list." in read.splitlines(), "the decision was not read")
    for result, word in ((reserved, "reserved"), (released, "released")):
        expect(word in result and "`src/parse.rs`" in result and "`tests/**`" in result, f"the files were not {word}")


def _server_says(stage: Stage) -> dict:
    """The instructions and the tools, as the server gives them to any client."""
    meet = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "case", "version": "1"}}
    requests = [
        {"id": 1, "method": "initialize", "params": meet},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    server = subprocess.Popen(
        [stage.bin, "serve"], cwd=stage.project, env=stage.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    results: dict = {}
    with server:
        for request in requests:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
            server.stdin.flush()
            while request.get("id") and (answer := json.loads(server.stdout.readline())):
                if answer.get("id") == request["id"]:
                    results.update(answer["result"])
                    break
        server.stdin.close()
    return results


def _texts(value: object) -> list[str]:
    """Every string in a request, at any depth."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for part in value for text in _texts(part)] if isinstance(value, list) else []
