//! Points in time and ages.

use std::fmt;

use serde::Serialize;

/// UTC milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Time(pub i64);

pub const SECOND: i64 = 1_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

impl Time {
    /// How long ago `earlier` was; never negative, so that clocks which jump back do no harm.
    pub fn since(self, earlier: Time) -> Age {
        Age((self.0 - earlier.0).max(0))
    }

    /// `2026-07-28T12:03:44Z`, for files that outlive a day.
    pub fn utc(self) -> String {
        let at = jiff::Timestamp::from_millisecond(self.0).unwrap_or_default();
        format!("{at:.0}")
    }

    /// The point `millis` before this one.
    #[must_use]
    pub fn before(self, millis: i64) -> Time {
        Time(self.0 - millis)
    }
}

/// A span in milliseconds, shown in its largest whole unit: `12 min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(pub i64);

impl Age {
    /// `just now` or `3 min ago`.
    pub fn ago(self) -> String {
        if self.0 < MINUTE { "just now".to_owned() } else { format!("{self} ago") }
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            age if age < MINUTE => write!(f, "{} s", age / SECOND),
            age if age < HOUR => write!(f, "{} min", age / MINUTE),
            age if age < 2 * DAY => write!(f, "{} h", age / HOUR),
            age => write!(f, "{} days", age / DAY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Age, DAY, HOUR, MINUTE, SECOND, Time};

    #[test]
    fn ages_are_shown_in_their_largest_whole_unit() {
        let check = |age: i64, shown: &str| assert_eq!(Age(age).to_string(), shown);
        check(0, "0 s");
        check(59 * SECOND + 999, "59 s");
        check(MINUTE, "1 min");
        check(3 * HOUR - 1, "2 h");
        check(2 * DAY - 1, "47 h");
        check(2 * DAY, "2 days");
        assert_eq!(Age(59_999).ago(), "just now");
        assert_eq!(Age(2 * MINUTE).ago(), "2 min ago");
        assert_eq!(Time(5).since(Time(9)), Age(0), "a clock that jumped back");
    }
}
