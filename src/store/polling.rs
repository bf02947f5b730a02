//! How far a member's poll daemon has come.

use rusqlite::OptionalExtension as _;

use super::{
    Shown, Tx,
    messages::{shown, shown_columns},
};
use crate::{
    domain::id::{MemberId, MessageId, SessionId},
    error::Result,
};

/// A message as the daemon of its recipient finds it.
#[derive(Debug, Clone)]
pub struct Polled {
    pub message: Shown,
    /// The session that it was handed to last, if it was.
    pub handed_to: Option<SessionId>,
    pub is_read: bool,
}

/// Read and unread mail lie in order each; asked for as one, all that is behind would be sorted.
const NEXT: &str = concat!(
    "SELECT ",
    shown_columns!("late", "n_handed"),
    ", handed_session, is_read FROM delivery JOIN message ON message.id = message_id
     WHERE member_id = +?1 AND is_read IN (0, 1) AND message_id = (
         SELECT min(next) FROM (
             SELECT min(message_id) AS next FROM delivery
             WHERE member_id = +?1 AND is_read = 0 AND message_id > ?2
             UNION ALL
             SELECT min(message_id) FROM delivery
             WHERE member_id = +?1 AND is_read = 1 AND message_id > ?2))"
);

impl Tx<'_> {
    /// The last message that the member's daemon dealt with; `None` where there never was a daemon.
    pub fn polled_to(&self, member: MemberId) -> Result<Option<MessageId>> {
        let mut statement =
            self.conn.prepare_cached("SELECT polled_to FROM member WHERE id = ?1")?;
        let polled_to: Option<i64> = statement.query_row([member.0], |row| row.get(0))?;
        Ok(polled_to.map(MessageId))
    }

    pub fn set_polled_to(&self, member: MemberId, message: MessageId) -> Result<()> {
        self.writing()?
            .prepare_cached("UPDATE member SET polled_to = ?2 WHERE id = ?1")?
            .execute([member.0, message.0])?;
        Ok(())
    }

    /// The next message in the member's inbox behind this one, read or not.
    pub fn next_polled(&self, member: MemberId, after: MessageId) -> Result<Option<Polled>> {
        let mut statement = self.conn.prepare_cached(NEXT)?;
        let polled = |row: &rusqlite::Row<'_>| {
            Ok(Polled {
                message: shown(row)?,
                handed_to: row.get::<_, Option<i64>>("handed_session")?.map(SessionId),
                is_read: row.get("is_read")?,
            })
        };
        Ok(statement.query_row([member.0, after.0], polled).optional()?)
    }
}

#[cfg(test)]
mod tests {
    use super::NEXT;
    use crate::store::plan_of;

    #[test]
    fn the_next_is_found_by_the_key() {
        let plan = plan_of(NEXT);
        assert!(!plan.iter().any(|step| step.contains("SCAN delivery")), "{plan:?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
    }
}
