//! The flood guard: so many messages per member and minute.

use super::time::{Age, MINUTE, Time};

/// What a member has sent since when. A window begins with the first message after the last one
/// ended, so that the row of the member holds all there is to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub began_at: Time,
    pub n_messages: u32,
}

impl Window {
    /// The window with one message more.
    ///
    /// # Errors
    /// The time until the member may write again.
    pub fn add(self, now: Time, max: u32) -> Result<Window, Age> {
        let age = now.since(self.began_at);
        if age.0 >= MINUTE || now < self.began_at {
            return Ok(Window { began_at: now, n_messages: 1 });
        }
        if self.n_messages >= max {
            return Err(Age(MINUTE - age.0));
        }
        Ok(Window { n_messages: self.n_messages + 1, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::{Age, Time, Window};

    #[test]
    fn the_guard_closes_and_opens_again() {
        let mut window = Window { began_at: Time(0), n_messages: 0 };
        for n in 1..=3 {
            window = window.add(Time(1_000), 3).unwrap();
            assert_eq!(window.n_messages, n);
        }
        assert_eq!(window.add(Time(20_000), 3), Err(Age(40_000)));
        let next = window.add(Time(60_000), 3).unwrap();
        assert_eq!(next, Window { began_at: Time(60_000), n_messages: 1 });
        assert_eq!(next.add(Time(5), 3).unwrap().n_messages, 1, "a clock that jumped back");
    }
}
