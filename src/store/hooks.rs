//! What hooks have told a session.

use rusqlite::{OptionalExtension as _, params};

use super::Tx;
use crate::{
    domain::{
        id::{MemberId, MessageId, SessionId},
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

const WAITING: &str = "SELECT message_id, member.name, sent_at FROM delivery
    JOIN message ON message.id = message_id
    JOIN member ON member.id = delivery.sender_id
    WHERE member_id = +?1 AND message_id > +?3 AND read_at IS NULL
        AND (handed_session IS NULL OR handed_session <> ?2)
    ORDER BY message_id LIMIT ?4 + 0";

const LAST_WAITING: &str = "SELECT message_id FROM delivery
    WHERE member_id = +?1 AND read_at IS NULL AND (handed_session IS NULL OR handed_session <> ?2)
    ORDER BY message_id DESC LIMIT 1";

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

    /// The newest unread message of a member, for the session that sits there.
    pub fn last_waiting(&self, member: MemberId, session: SessionId) -> Result<Option<MessageId>> {
        let mut statement = self.conn.prepare_cached(LAST_WAITING)?;
        let last = statement.query_row([member.0, session.0], |row| row.get(0).map(MessageId));
        Ok(last.optional()?)
    }

    /// The oldest unread messages of a member behind one, for the session that sits there: by the
    /// one unread query, without bodies.
    pub fn waiting(
        &self,
        member: MemberId,
        session: SessionId,
        after: MessageId,
        limit: usize,
    ) -> Result<Vec<Waiting>> {
        let mut statement = self.conn.prepare_cached(WAITING)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map([member.0, session.0, after.0, limit], |row| {
            Ok(Waiting {
                id: MessageId(row.get(0)?),
                sender: row.get(1)?,
                sent_at: Time(row.get(2)?),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, StatementStatus};

    use super::{LAST_WAITING, WAITING};

    #[test]
    fn what_waits_is_found_in_the_index_of_unread_mail() {
        let conn = Connection::open_in_memory().unwrap();
        super::super::schema::migrate(&conn, 0).unwrap();
        let looks: [(&str, &[i64]); 2] = [(WAITING, &[1, 2, 3, 100]), (LAST_WAITING, &[1, 2])];
        for (sql, values) in looks {
            let values = || rusqlite::params_from_iter(values);
            for _ in 0..3 {
                let mut statement = conn.prepare_cached(sql).unwrap();
                statement.query(values()).unwrap().next().unwrap();
                assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
            }
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan: Vec<String> = explain
                .query_map(values(), |row| row.get("detail"))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert!(plan.iter().any(|step| step.contains("delivery_unread")), "{plan:?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
        }
    }
}
