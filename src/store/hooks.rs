//! What hooks have told a session.

use rusqlite::{OptionalExtension as _, params};

use super::{Tx, bare, messages::unread};
use crate::{
    domain::{
        id::{MemberId, MessageId, SessionId},
        limits,
        time::Time,
    },
    error::Result,
};

/// How far a session's hooks have come. They mark nothing as read: this is beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookMarks {
    /// The last message that was announced to it.
    pub announced_to: MessageId,
    /// The last message that kept it from stopping.
    pub held_to: MessageId,
    /// When a hook last ran, within half a minute.
    pub hook_at: Option<Time>,
}

/// An unread message, as a hook tells of it.
#[derive(Debug, Clone)]
pub struct Waiting {
    pub id: MessageId,
    pub sender: String,
    pub sent_at: Time,
}

const LAST_UNREAD: &str = concat!(
    "SELECT message_id FROM delivery WHERE ",
    unread!(),
    " ORDER BY message_id DESC LIMIT 1"
);

const WAITING: &str = concat!(
    "SELECT message_id, member.name, sent_at FROM delivery
     JOIN message ON message.id = message_id
     JOIN member ON member.id = delivery.sender_id
     WHERE ",
    unread!(),
    " AND message_id > +?3 ORDER BY message_id LIMIT ?4 + 0"
);

const COUNT_WAITING: &str = concat!(
    "SELECT count(*) FROM (SELECT 1 FROM delivery WHERE ",
    unread!(),
    " AND message_id <= +?3 LIMIT ?4 + 0)"
);

impl Tx<'_> {
    /// `None` where there is no such session.
    pub fn hook_marks(&self, session: SessionId) -> Result<Option<HookMarks>> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT announced_to, held_to, hook_at FROM session WHERE id = ?1")?;
        let marks = statement.query_row([session.0], |row| {
            Ok(HookMarks {
                announced_to: MessageId(row.get(0)?),
                held_to: MessageId(row.get(1)?),
                hook_at: row.get::<_, Option<i64>>(2)?.map(Time),
            })
        });
        Ok(marks.optional()?)
    }

    pub fn set_hook_marks(&self, session: SessionId, marks: &HookMarks) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "UPDATE session SET announced_to = ?2, held_to = ?3, hook_at = ?4 WHERE id = ?1",
            )?
            .execute(params![
                session.0,
                marks.announced_to.0,
                marks.held_to.0,
                marks.hook_at.map(|at| at.0)
            ])?;
        Ok(())
    }

    /// The last unread message of a member, for the session that sits there.
    pub fn last_unread(&self, member: MemberId, session: SessionId) -> Result<Option<MessageId>> {
        let mut statement = self.conn.prepare_cached(LAST_UNREAD)?;
        let last = statement.query_row([member.0, session.0], |row| row.get(0));
        Ok(last.optional()?.map(MessageId))
    }

    /// The unread messages behind this one, without bodies; up to where counts stop.
    pub fn waiting_behind(
        &self,
        member: MemberId,
        session: SessionId,
        known: MessageId,
    ) -> Result<Vec<Waiting>> {
        let mut statement = self.conn.prepare_cached(WAITING)?;
        let rows = statement.query_map([member.0, session.0, known.0, stop()], |row| {
            Ok(Waiting {
                id: MessageId(row.get(0)?),
                sender: bare(row, 1)?,
                sent_at: Time(row.get(2)?),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// How many messages up to this one are unread; the count stops.
    pub fn count_waiting_to(
        &self,
        member: MemberId,
        session: SessionId,
        known: MessageId,
    ) -> Result<usize> {
        let mut statement = self.conn.prepare_cached(COUNT_WAITING)?;
        let count: i64 =
            statement.query_row([member.0, session.0, known.0, stop()], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

fn stop() -> i64 {
    i64::try_from(limits::COUNT_STOPS_AT).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{COUNT_WAITING, LAST_UNREAD, WAITING};
    use crate::store::plan_of;

    #[test]
    fn what_waits_is_found_by_the_key() {
        for sql in [LAST_UNREAD, WAITING, COUNT_WAITING] {
            let plan = plan_of(sql);
            let by_key = "PRIMARY KEY (member_id=? AND is_read=?";
            assert!(plan.iter().any(|step| step.contains(by_key)), "{plan:?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
        }
    }
}
