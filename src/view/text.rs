//! Results as text, for models and for terminals.
//!
//! What we say stands bare; what a member wrote stands behind `| ` or in backticks.

use std::fmt;

use crate::{
    domain::{
        id::MessageId,
        limits,
        message::Kind,
        name,
        time::{Age, Time},
    },
    view::sanitize,
};

/// Who reads the text: it decides how the next step is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// A model, which calls tools.
    Tools,
    /// A person or a script, which runs commands.
    Commands,
}

impl Front {
    /// How one reads one's mail.
    pub fn read_mail(self) -> &'static str {
        match self {
            Front::Tools => "call get_messages",
            Front::Commands => "run `team-table inbox`",
        }
    }

    /// What lists everybody.
    pub fn list_members(self) -> &'static str {
        match self {
            Front::Tools => "list_members",
            Front::Commands => "`team-table members`",
        }
    }

    /// What takes the id below which the history is to go on.
    pub fn before(self) -> &'static str {
        match self {
            Front::Tools => "before",
            Front::Commands => "--before",
        }
    }
}

/// The server-made facts of a message: `#41 codex-1 to you, 3 min ago, reply to #38`.
#[derive(Debug, Clone)]
pub struct Header<'a> {
    pub id: MessageId,
    pub sender: &'a str,
    pub to: &'a str,
    pub kind: Kind,
    pub reply_to: Option<MessageId>,
    pub sent_at: Time,
    pub late: bool,
    pub again: bool,
}

impl Header<'_> {
    /// With the age of the message.
    pub fn line(&self, now: Time) -> String {
        self.with(&format!(", {}", now.since(self.sent_at).ago()))
    }

    /// Without its age; for where the time stands beside it.
    pub fn facts(&self) -> String {
        self.with("")
    }

    fn with(&self, age: &str) -> String {
        let mut line = format!("{} {} to {}{age}", self.id, self.sender, self.to);
        if let Some(parent) = self.reply_to {
            line.extend([", reply to ", &parent.to_string()]);
        }
        if self.kind == Kind::Auto && self.sender != name::TEAM_TABLE {
            line.push_str(", written by a program");
        }
        if self.late {
            line.push_str(", sent before you came");
        }
        if self.again {
            line.push_str(" (again)");
        }
        line
    }

    /// The header line and, behind the fence, the body.
    pub fn with_body(&self, body: &str, now: Time) -> String {
        format!("{}\n{}", self.line(now), sanitize::fence(body))
    }
}

/// What was done to a task, as the log has it: our words, and the text of others that belongs behind
/// the fence. `None` for what a newer version wrote.
pub fn task_event<'a>(
    kind: &str,
    task: &str,
    detail: &'a str,
) -> Option<(String, Option<&'a str>)> {
    let words = match kind {
        "task.created" => format!("created {task} {}", sanitize::field(detail)),
        "task.claimed" => format!("claimed {task}"),
        "task.taken_over" => format!("took {task} over from {detail}"),
        "task.moved" => format!("moved {task} to {detail}"),
        "task.assigned" if detail.is_empty() => format!("assigned {task} to nobody"),
        "task.assigned" => format!("assigned {task} to {detail}"),
        "task.lapsed" => format!("put {task} back, since {detail} is gone"),
        "task.commented" => return Some((format!("commented on {task}"), Some(detail))),
        "task.result" => return Some((format!("set the result of {task}"), Some(detail))),
        _ => return None,
    };
    Some((words, None))
}

/// A count that stopped where counts stop: `99+`.
pub fn count(n: usize) -> String {
    if n >= limits::COUNT_STOPS_AT {
        format!("{}+", limits::COUNT_STOPS_AT - 1)
    } else {
        n.to_string()
    }
}

/// `1 member`, `12 members`.
pub fn counted(n: impl fmt::Display + PartialEq + From<u8> + Copy, noun: &str) -> String {
    let ending = if n == 1.into() { "" } else { "s" };
    format!("{n} {noun}{ending}")
}

/// `1 message`, `99+ messages`.
pub fn messages(n: usize) -> String {
    if n == 1 { "1 message".to_owned() } else { format!("{} messages", count(n)) }
}

/// `2 unread messages (codex-1, human)`.
pub fn unread(n: usize, senders: &[String]) -> String {
    let word = if n == 1 { "message" } else { "messages" };
    format!("{} unread {word} ({})", count(n), list(senders, 5))
}

/// The line that ends the result of a member with unread mail.
pub fn badge(n: usize, senders: &[String], front: Front) -> String {
    format!("team-table: {}: {}", unread(n, senders), front.read_mail())
}

/// Words with commas, at most so many: `a, b and 3 more`.
pub fn list<T: AsRef<str>>(words: &[T], at_most: usize) -> String {
    let shown: Vec<&str> = words.iter().take(at_most).map(AsRef::as_ref).collect();
    match words.len().saturating_sub(at_most) {
        0 => shown.join(", "),
        rest => format!("{} and {rest} more", shown.join(", ")),
    }
}

/// How long until something may go on, rounded up to whole seconds.
pub fn seconds_left(left: Age) -> String {
    format!("{} s", (left.0 + 999) / 1000)
}

/// Bytes with their unit: `1 byte`, `1,234 bytes`.
pub fn bytes(n: usize) -> String {
    let digits = n.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    format!("{shown} {}", if n == 1 { "byte" } else { "bytes" })
}
