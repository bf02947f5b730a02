//! Who has entered the page: secrets of sessions, in memory only.

use std::sync::{Mutex, PoisonError};

use crate::{
    domain::{
        time::{DAY, Time},
        token,
    },
    error::Result,
    platform,
};

/// A session that nobody used for so long is over.
const LIFE: i64 = DAY;
/// Sessions at once; the one that was not used for longest makes room.
const SESSIONS: usize = 64;

/// See the module's text. What a secret hashes to, and when it was last used; the lock is never held
/// across an await.
#[derive(Default)]
pub(super) struct Door {
    sessions: Mutex<Vec<(String, Time)>>,
}

impl Door {
    /// A new session; gives its secret.
    pub(super) fn open(&self, now: Time) -> Result<String> {
        let secret = token::text(&platform::random()?);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|(_, used_at)| now.since(*used_at).0 < LIFE);
        sessions.sort_by_key(|(_, used_at)| *used_at);
        while sessions.len() >= SESSIONS {
            sessions.remove(0);
        }
        sessions.push((token::hash(&secret), now));
        Ok(secret)
    }

    /// Whether this is the secret of a session. Hashes are compared, so that how long it takes tells
    /// nothing of a secret.
    pub(super) fn knows(&self, secret: &str, now: Time) -> bool {
        let hash = token::hash(secret);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sessions.iter_mut().find(|(known, _)| *known == hash);
        known.is_some_and(|(_, used_at)| {
            let is_live = now.since(*used_at).0 < LIFE;
            if is_live {
                *used_at = now;
            }
            is_live
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{DAY, Door, SESSIONS, Time};

    #[test]
    fn sessions_end() {
        let (door, now) = (Door::default(), Time(5 * DAY));
        let secret = door.open(now).unwrap();
        assert!(door.knows(&secret, Time(now.0 + DAY - 1)), "and so it was used");
        assert!(door.knows(&secret, Time(now.0 + 2 * DAY - 2)));
        assert!(!door.knows(&secret, Time(now.0 + 4 * DAY)));
        assert!(!door.knows("", now));
    }

    #[test]
    fn the_oldest_makes_room() {
        let door = Door::default();
        let secrets: Vec<String> =
            (0..=SESSIONS).map(|n| door.open(Time(i64::try_from(n).unwrap())).unwrap()).collect();
        assert!(!door.knows(&secrets[0], Time(100)));
        assert!(door.knows(&secrets[1], Time(100)));
    }
}
