//! States of a member, computed when they are read, never stored.

use std::fmt;

use super::time::{Age, DAY, HOUR, MINUTE, Time};

/// A heartbeat this old makes a session idle.
const IDLE_AFTER: i64 = 5 * MINUTE;
/// A member without a seat is away when its last command is this old.
const SEATLESS_AWAY_AFTER: i64 = 15 * MINUTE;
/// A member whose seat is free is gone when its heartbeat is this old.
const GONE_AFTER: i64 = 15 * MINUTE;
/// A session this silent may be kept alive by its client's daemon alone.
const MAYBE_CLOSED_AFTER: i64 = 4 * HOUR;
/// Away for this long counts as left.
const LEFT_AFTER: i64 = 7 * DAY;

/// The facts that a member's state follows from.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are facts that do not depend on each other"
)]
pub struct Presence {
    /// The human, or a member that the command line speaks as: it never has a seat.
    pub seatless: bool,
    /// The human, who never leaves.
    pub human: bool,
    /// A helper that another session started: it has left as soon as its seat is free.
    pub sub: bool,
    /// A session sits on the seat.
    pub held: bool,
    /// The last sign of life, if there was one.
    pub heartbeat_at: Option<Time>,
    /// When it deregistered, if it did.
    pub left_at: Option<Time>,
}

/// What a member is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Active,
    /// A session sits there, silent for so long.
    Idle(Age),
    /// Nobody sits there; last seen so long ago, if ever.
    Away(Option<Age>),
    /// Deregistered, or away for 7 days; since when.
    Left(Option<Age>),
}

impl Presence {
    pub fn state(&self, now: Time) -> State {
        let silent = self.heartbeat_at.map(|at| now.since(at));
        if let Some(left_at) = self.left_at {
            return State::Left(Some(now.since(left_at)));
        }
        if self.seatless {
            return match silent {
                Some(age) if age.0 < IDLE_AFTER => State::Active,
                Some(age) if age.0 < SEATLESS_AWAY_AFTER => State::Idle(age),
                Some(age) if age.0 >= LEFT_AFTER && !self.human => State::Left(Some(age)),
                other => State::Away(other),
            };
        }
        match (self.held, silent) {
            (true, Some(age)) if age.0 >= IDLE_AFTER => State::Idle(age),
            (true, _) => State::Active,
            (false, Some(age)) if self.sub || age.0 >= LEFT_AFTER => State::Left(Some(age)),
            (false, other) => State::Away(other),
        }
    }

    /// Whether what this member holds lapses. What the human holds never does.
    pub fn is_gone(&self, now: Time) -> bool {
        let silent = self.heartbeat_at.map_or(i64::MAX, |at| now.since(at).0);
        !self.human && silent >= if self.held { MAYBE_CLOSED_AFTER } else { GONE_AFTER }
    }
}

impl State {
    /// Whether the member takes part no more.
    pub fn has_left(self) -> bool {
        matches!(self, State::Left(_))
    }

    /// The bare word, for JSON.
    pub fn word(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Idle(_) => "idle",
            State::Away(_) => "away",
            State::Left(_) => "left",
        }
    }
}

/// The state with its age: `idle 12 min`, `away, last seen 3 h ago`.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Active => f.write_str("active"),
            State::Idle(age) if age.0 >= MAYBE_CLOSED_AFTER => {
                write!(f, "idle {age} (maybe closed)")
            }
            State::Idle(age) => write!(f, "idle {age}"),
            State::Away(Some(age)) => write!(f, "away, last seen {}", age.ago()),
            State::Away(None) => f.write_str("away, not seen yet"),
            State::Left(Some(age)) => write!(f, "left {}", age.ago()),
            State::Left(None) => f.write_str("left"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DAY, HOUR, MINUTE, Presence, State, Time};

    const NOW: Time = Time(100 * DAY);

    fn seen(ago: i64, held: bool) -> Presence {
        Presence {
            seatless: false,
            human: false,
            sub: false,
            held,
            heartbeat_at: Some(NOW.before(ago)),
            left_at: None,
        }
    }

    #[test]
    fn states() {
        let check = |presence: Presence, shown: &str| {
            assert_eq!(presence.state(NOW).to_string(), shown, "{presence:?}");
        };
        check(seen(5 * MINUTE - 1, true), "active");
        check(seen(5 * MINUTE, true), "idle 5 min");
        check(seen(4 * HOUR, true), "idle 4 h (maybe closed)");
        check(seen(30 * DAY, true), "idle 30 days (maybe closed)");
        check(seen(0, false), "away, last seen just now");
        check(seen(3 * HOUR, false), "away, last seen 3 h ago");
        check(seen(7 * DAY, false), "left 7 days ago");
        check(Presence { left_at: Some(NOW.before(HOUR)), ..seen(0, true) }, "left 1 h ago");
        check(Presence { sub: true, ..seen(MINUTE, false) }, "left 1 min ago");
        let person = |ago| Presence { seatless: true, human: true, ..seen(ago, false) };
        check(person(0), "active");
        check(person(6 * MINUTE), "idle 6 min");
        check(person(15 * MINUTE), "away, last seen 15 min ago");
        check(person(90 * DAY), "away, last seen 90 days ago");
        check(Presence { heartbeat_at: None, ..person(0) }, "away, not seen yet");
    }

    #[test]
    fn gone() {
        assert!(!seen(15 * MINUTE - 1, false).is_gone(NOW));
        assert!(seen(15 * MINUTE, false).is_gone(NOW));
        assert!(!seen(4 * HOUR - 1, true).is_gone(NOW));
        assert!(seen(4 * HOUR, true).is_gone(NOW));
        assert!(!Presence { human: true, ..seen(90 * DAY, false) }.is_gone(NOW));
        assert_eq!(seen(0, true).state(NOW), State::Active);
    }
}
