//! What a poll daemon does with a message: the rules alone.

use super::{
    message::Kind,
    question::{self, Asks},
};

/// What is to be done with one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    PassOver(Because),
    /// The sender is told that it arrived.
    Acknowledge,
    /// A person has to look; the daemon ends.
    Escalate(Reason),
}

/// Why a message is neither acknowledged nor escalated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// A program wrote it: two daemons would answer each other for ever.
    Automatic,
    /// Acknowledged by each recipient, a broadcast would come back as many messages.
    Broadcast,
    /// Nobody reads an answer.
    SenderLeft,
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Question,
    Decision,
    /// There were as many replies as there may be.
    Limit,
}

impl Reason {
    /// The bare word, for programs.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Question => "question",
            Reason::Decision => "decision",
            Reason::Limit => "max-messages",
        }
    }
}

/// A message, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    pub kind: Kind,
    pub is_broadcast: bool,
    pub sender_left: bool,
    pub body: &'a str,
}

/// Decides about one message after `n_replies` of at most `max_replies`.
pub fn action(incoming: Incoming<'_>, n_replies: u32, max_replies: u32) -> Action {
    if incoming.kind == Kind::Auto {
        return Action::PassOver(Because::Automatic);
    }
    match question::asked(incoming.body) {
        Some(Asks::Question) => return Action::Escalate(Reason::Question),
        Some(Asks::Decision) => return Action::Escalate(Reason::Decision),
        None => {}
    }
    if incoming.is_broadcast {
        Action::PassOver(Because::Broadcast)
    } else if incoming.sender_left {
        Action::PassOver(Because::SenderLeft)
    } else if n_replies >= max_replies {
        Action::Escalate(Reason::Limit)
    } else {
        Action::Acknowledge
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Because, Incoming, Reason, action};
    use crate::domain::message::Kind;

    #[test]
    fn one_action_for_each_message() {
        let plain = Incoming {
            kind: Kind::Message,
            is_broadcast: false,
            sender_left: false,
            body: "The parser is done.",
        };
        let check = |incoming: Incoming<'_>, n_replies: u32, expected: Action| {
            assert_eq!(action(incoming, n_replies, 13), expected, "{incoming:?}, {n_replies}");
        };
        check(plain, 0, Action::Acknowledge);
        check(plain, 12, Action::Acknowledge);
        check(plain, 13, Action::Escalate(Reason::Limit));
        let asking = Incoming { body: "Shall I merge?", ..plain };
        let deciding = Incoming { body: "Please decide between A and B.", ..plain };
        for n_replies in [0, 13] {
            check(asking, n_replies, Action::Escalate(Reason::Question));
            check(deciding, n_replies, Action::Escalate(Reason::Decision));
            let everyone = Incoming { is_broadcast: true, ..asking };
            check(everyone, n_replies, Action::Escalate(Reason::Question));
            let left = Incoming { sender_left: true, ..asking };
            check(left, n_replies, Action::Escalate(Reason::Question));
            let auto = Incoming { kind: Kind::Auto, ..asking };
            check(auto, n_replies, Action::PassOver(Because::Automatic));
            let broadcast = Incoming { is_broadcast: true, ..plain };
            check(broadcast, n_replies, Action::PassOver(Because::Broadcast));
            let left = Incoming { sender_left: true, ..plain };
            check(left, n_replies, Action::PassOver(Because::SenderLeft));
        }
    }
}
