"""Whether the tools run without asking: `init --with allow`, with the real Claude Code."""

from cases import REFUSED, case
from drive import QUIET_CLAUDE, Session, Stage, expect, me
from scripted_model import ScriptedModel, Step, call, say


@case("claude")
def claude_asks_nobody_where_the_tools_are_allowed(stage: Stage) -> None:
    """`claude -p` has nobody to ask: what is not allowed is refused, in a trusted folder too."""
    stage.trust_in_claude()
    before = _claude(stage, call("register", role="builder"), say("refused")).wait()
    expect(REFUSED.search(before[0]), "a tool ran that nobody had allowed")
    stage.install("allow")
    after = _claude(stage, call("register", role="builder"), say("done")).wait()
    expect(me(after[0]) == "claude-1", "an allowed tool did not run")


def _claude(stage: Stage, *steps: Step) -> Session:
    """As `Stage.claude`, but that nothing is allowed on the command line."""
    model = ScriptedModel(list(steps))
    env = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "not-a-key", **QUIET_CLAUDE}
    command = [str(stage.clients["claude"]), "-p", "go", "--permission-mode", "default"]
    return stage._start("claude", command, env, None, model)
