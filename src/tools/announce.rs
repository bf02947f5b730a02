//! `announce`: what a client's hooks call. It is answered and not listed, so that it costs models
//! nothing.
//!
//! A hook tells of unread mail and marks nothing as read: a client may drop what a hook says, and
//! shows the rest to the model as words of the system, so that no text of a member is in it. Each
//! message is announced to a session once, and once more where the session is about to stop.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Access, Cx, Tool};
use crate::{
    domain::{
        id::MessageId,
        limits,
        time::{SECOND, Time},
    },
    error::Result,
    store::Waiting,
    view::text,
};

pub(super) struct Announce;

/// So old may the note be of when a hook last ran.
const STALE_AFTER: i64 = 30 * SECOND;
/// So many messages are named one by one.
const NAMED: usize = 5;

/// What a hook hands over. Names are those of Claude Code, Codex and Gemini CLI, which agree;
/// whatever else it says is not looked at.
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    /// `PostToolUse`.
    #[serde(alias = "hook_event_name")]
    #[arg(skip)]
    event: String,
    /// The session was kept from stopping just before. Claude Code 2.1.332 hands over `"true"`,
    /// Codex 0.171.0 true.
    #[serde(default)]
    #[schemars(skip)]
    #[arg(skip)]
    stop_hook_active: Value,
}

/// A moment in a session at which its client runs hooks, by what can be done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// What is said is added to what the model is shown next.
    Working,
    /// The turn is over, unless the hook says why it is not.
    Stopping,
    /// Nobody works; what is said begins a turn.
    Idle,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    #[serde(skip)]
    event: String,
    #[serde(skip)]
    moment: Option<Moment>,
    /// What there is to say; nothing where it is empty.
    told: String,
}

/// Why a hook had nothing to say that was not answered in time.
pub(crate) const GAVE_UP: &str = "the table was busy; the next hook tells what is new";

/// The event of our own by which a waiting process asks.
pub(super) const IDLE: &str = "Idle";

impl Moment {
    /// Sources: Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0.
    fn of(event: &str) -> Option<Moment> {
        match event {
            "SessionStart" | "UserPromptSubmit" | "BeforeAgent" | "PostToolUse" | "AfterTool" => {
                Some(Moment::Working)
            }
            "Stop" | "AfterAgent" => Some(Moment::Stopping),
            IDLE => Some(Moment::Idle),
            _ => None,
        }
    }
}

impl Tool for Announce {
    const NAME: &'static str = "announce";
    const COMMAND: &'static str = "announce";
    const ACCESS: Access = Access::MayWrite;
    const IS_HOOK: bool = true;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        cx.effects.said_unread = true;
        let nothing = |moment| Output { event: params.event.clone(), moment, told: String::new() };
        let session = cx.me.reads_as;
        let (Some(moment), Some(before)) = (Moment::of(&params.event), cx.tx.hook_marks(session)?)
        else {
            return Ok(nothing(None));
        };
        // By the newest one: who has more unread than is counted hears of what is new, too.
        let last = cx.tx.last_waiting(cx.me.id, session)?.unwrap_or(MessageId(0));
        let waiting = |after| cx.tx.waiting(cx.me.id, session, after, limits::COUNT_STOPS_AT);
        let mut after = before;
        if moment != Moment::Idle
            && before.hook_at.is_none_or(|at| cx.now.since(at).0 >= STALE_AFTER || cx.now < at)
        {
            after.hook_at = Some(cx.now);
        }
        let told = match moment {
            Moment::Working | Moment::Idle if last > before.announced_to => {
                after.announced_to = last;
                let mut known = waiting(MessageId(0))?;
                known.retain(|message| message.id <= before.announced_to);
                announcement(&waiting(before.announced_to)?, known.len(), cx.now)
            }
            Moment::Stopping if last > before.held_to && !is_true(&params.stop_hook_active) => {
                (after.announced_to, after.held_to) = (last, last);
                let all = waiting(MessageId(0))?;
                format!("before you stop: {}", announcement(&all, 0, cx.now))
            }
            _ => String::new(),
        };
        if after != before {
            cx.tx.set_hook_marks(session, &after)?;
        }
        Ok(Output { told, ..nothing(Some(moment)) })
    }
}

/// `2 unread messages: #41 from codex-1, 3 min ago; #42 from human, just now; 3 announced before.
/// Call get_messages to read them.`
fn announcement(new: &[Waiting], n_before: usize, now: Time) -> String {
    let count = new.len();
    let noun = if count == 1 { "message" } else { "messages" };
    let mut named: Vec<String> = new
        .iter()
        .take(NAMED)
        .map(|it| format!("{} from {}, {}", it.id, it.sender, now.since(it.sent_at).ago()))
        .collect();
    if count > NAMED {
        named.push(format!("{} more", text::count(count - NAMED)));
    }
    if n_before > 0 {
        named.push(format!("{} announced before", text::count(n_before)));
    }
    format!(
        "{} unread {noun} for you: {}. Call get_messages to read.",
        text::count(count),
        named.join("; ")
    )
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(is_true) => *is_true,
        Value::String(text) => text == "true",
        _ => false,
    }
}

/// As clients read it: JSON from the first character on, `{}` where there is nothing to say. For a
/// process that waits: the words alone.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = format!("team-table: {}", self.told);
        let reply = match self.moment {
            _ if self.told.is_empty() => match self.moment {
                Some(Moment::Idle) => return Ok(()),
                _ => json!({}),
            },
            Some(Moment::Idle) => return f.write_str(&told),
            Some(Moment::Stopping) => json!({"decision": "block", "reason": told}),
            _ => json!({
                "hookSpecificOutput": {"hookEventName": self.event, "additionalContext": told}
            }),
        };
        write!(f, "{reply}")
    }
}

#[cfg(test)]
mod tests {
    use super::{MessageId, Time, Waiting, announcement};

    #[test]
    fn the_first_messages_are_named_and_the_rest_is_counted() {
        let all: Vec<Waiting> = (1..=8)
            .map(|n| Waiting { id: MessageId(n), sender: format!("ada-{n}"), sent_at: Time(0) })
            .collect();
        let told = |n: usize, before: usize| announcement(&all[..n], before, Time(60_000));
        assert_eq!(
            told(1, 0),
            "1 unread message for you: #1 from ada-1, 1 min ago. Call get_messages to read."
        );
        assert_eq!(
            told(2, 3),
            "2 unread messages for you: #1 from ada-1, 1 min ago; #2 from ada-2, 1 min ago; 3 \
             announced before. Call get_messages to read."
        );
        assert!(told(8, 0).contains("#5 from ada-5, 1 min ago; 3 more."), "{}", told(8, 0));
    }
}
