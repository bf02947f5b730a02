//! Messages and their deliveries.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Tx, bare};
use crate::{
    domain::{
        id::{MemberId, MessageId, SessionId, TaskId},
        limits,
        message::Kind,
        time::{DAY, HOUR, Time},
    },
    error::Result,
};

/// A message to be.
#[derive(Debug)]
pub struct NewMessage<'a> {
    pub sender: MemberId,
    pub kind: Kind,
    /// What it was written to: a member's name, `@role` or `everyone`.
    pub audience: &'a str,
    pub is_broadcast: bool,
    /// The other party, where there is exactly one.
    pub recipient: Option<MemberId>,
    pub reply_to: Option<MessageId>,
    /// The task that a notice is about.
    pub task: Option<TaskId>,
    /// Whose doing a notice tells of: an answer to it goes there.
    pub about: Option<MemberId>,
    pub body: &'a str,
}

/// A message as one member sees it.
#[derive(Debug, Clone)]
pub struct Shown {
    pub id: MessageId,
    pub sender: String,
    pub sender_id: MemberId,
    pub kind: Kind,
    pub audience: String,
    pub is_broadcast: bool,
    pub recipient: Option<MemberId>,
    pub reply_to: Option<MessageId>,
    pub body: String,
    pub sent_at: Time,
    /// Sent before the member sat down.
    pub late: bool,
    /// Handed out before, to a session that ended before it was known to have read it.
    pub again: bool,
}

/// One recipient's part in a message.
#[derive(Debug, Clone)]
pub struct Standing {
    pub member: String,
    pub handed_at: Option<Time>,
    pub handed_session: Option<SessionId>,
    pub read_at: Option<Time>,
}

/// The unread mail of a member: how many (up to where counts stop), and from whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unread {
    pub count: usize,
    pub senders: Vec<String>,
}

/// Deliveries that were handed out together, to be confirmed or given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handing {
    /// The table's epoch: after a reset this is about nothing any more.
    pub epoch: i64,
    pub member: MemberId,
    pub session: SessionId,
    pub messages: Vec<MessageId>,
    /// Taken back while its reply was under way: nobody knows whether the client looked at it.
    pub may_have_arrived: bool,
}

/// What came of a `sent` question: who wrote a message and to whom.
#[derive(Debug, Clone)]
pub struct Sent {
    pub id: MessageId,
    pub sender: MemberId,
    pub recipient: Option<MemberId>,
    /// Whose doing a notice tells of.
    pub about: Option<MemberId>,
    pub audience: String,
    pub is_broadcast: bool,
}

/// What [`shown`] reads, in its order: to find each column by its name costs as much as the query.
macro_rules! shown_columns {
    ($late:literal, $n_handed:literal) => {
        concat!(
            "message.id, message.sender_id, message.kind, audience, is_broadcast, recipient_id,
             reply_to, body, sent_at, ",
            $late,
            ", ",
            $n_handed,
            ", (SELECT name FROM member WHERE id = message.sender_id)"
        )
    };
}
pub(super) use shown_columns;

/// What makes a delivery unread for the session `?2`: not read, and not handed to it.
///
/// `+?1`, and `?3 + 0` behind a LIMIT: a bare parameter there is one that `SQLite` 3.54 plans by its
/// value, and then it prepares the statement anew at each call, which costs as much as the rest of the
/// call.
macro_rules! unread {
    () => {
        "member_id = +?1 AND is_read = 0 AND (handed_session IS NULL OR handed_session <> ?2)"
    };
}
pub(super) use unread;

const UNREAD: &str = concat!(
    "SELECT sender_id FROM delivery WHERE ",
    unread!(),
    " ORDER BY message_id LIMIT ?3 + 0"
);

const COUNT_UNREAD: &str =
    concat!("SELECT count(*) FROM (SELECT 1 FROM delivery WHERE ", unread!(), " LIMIT ?3 + 0)");

const COUNT_UNREAD_AFTER: &str = concat!(
    "SELECT count(*) FROM (SELECT 1 FROM delivery WHERE ",
    unread!(),
    " AND message_id > ?4 LIMIT ?3 + 0)"
);

const UNREAD_MESSAGES: &str = concat!(
    "SELECT ",
    shown_columns!("late", "n_handed"),
    " FROM (SELECT message_id, late, n_handed FROM delivery WHERE ",
    unread!(),
    " ORDER BY message_id LIMIT ?3 + 0) JOIN message ON message.id = message_id ORDER BY id"
);

/// Under a name that it had before, a member is the same.
const LATE_BROADCASTS: &str =
    "WITH mine AS MATERIALIZED (SELECT id FROM member WHERE id = +?1 OR moved_to = +?1)
     INSERT INTO delivery (message_id, member_id, sender_id, late)
     SELECT id, ?1, sender_id, 1 FROM (
         SELECT message.id, sender_id FROM message JOIN member ON member.id = sender_id
         WHERE is_broadcast AND sender_id NOT IN mine
           AND sent_at > CASE member.kind WHEN 'human' THEN ?2 ELSE ?3 END
           AND NOT EXISTS (SELECT 1 FROM delivery WHERE member_id IN mine AND is_read IN (0, 1)
                                                    AND message_id = message.id)
           AND message.id > coalesce(
                   (SELECT max(message_id) FROM delivery WHERE member_id = +?1 AND late), 0)
         ORDER BY message.id DESC LIMIT ?4 + 0)";

const IS_PARTY: &str = "SELECT EXISTS (
     SELECT 1 FROM member WHERE (id = ?2 OR moved_to = ?2) AND (
         EXISTS (SELECT 1 FROM message
                 WHERE message.id = ?1 AND member.id IN (sender_id, recipient_id))
         OR EXISTS (SELECT 1 FROM delivery
                    WHERE member_id = member.id AND is_read IN (0, 1) AND message_id = +?1)))";

const STANDINGS: &str = "SELECT name, handed_at, handed_session, read_at
     FROM member CROSS JOIN delivery
     ON member_id = member.id AND is_read IN (0, 1) AND message_id = +?1 ORDER BY member.id";

/// A delivery that is handed to a session: the member `?1`, the message `?2`, the session `?3`.
macro_rules! handed {
    () => {
        "member_id = ?1 AND is_read = 0 AND message_id = ?2 AND handed_session = ?3"
    };
}

impl Tx<'_> {
    /// The one unread query, as a count with senders. `session` is the one that sits there now
    /// ([`SessionId::NOBODY`] where none does).
    pub fn unread(&self, member: MemberId, session: SessionId) -> Result<Unread> {
        let mut statement = self.conn.prepare_cached(UNREAD)?;
        let stop = i64::try_from(limits::COUNT_STOPS_AT).unwrap_or(i64::MAX);
        let mut rows = statement.query([member.0, session.0, stop])?;
        let mut unread = Unread::default();
        let mut senders: Vec<i64> = Vec::new();
        while let Some(row) = rows.next()? {
            unread.count += 1;
            let sender = row.get(0)?;
            if !senders.contains(&sender) {
                senders.push(sender);
            }
        }
        for sender in senders {
            unread.senders.push(self.name_of(MemberId(sender))?);
        }
        Ok(unread)
    }

    /// The same as a number; counts stop.
    pub fn count_unread(&self, member: MemberId, session: SessionId) -> Result<usize> {
        let mut statement = self.conn.prepare_cached(COUNT_UNREAD)?;
        let stop = i64::try_from(limits::COUNT_STOPS_AT).unwrap_or(i64::MAX);
        let count: i64 = statement.query_row([member.0, session.0, stop], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The same of those behind a message.
    pub fn count_unread_after(
        &self,
        member: MemberId,
        session: SessionId,
        message: Option<MessageId>,
    ) -> Result<usize> {
        let mut statement = self.conn.prepare_cached(COUNT_UNREAD_AFTER)?;
        let stop = i64::try_from(limits::COUNT_STOPS_AT).unwrap_or(i64::MAX);
        let after = message.map_or(0, |message| message.0);
        let count: i64 =
            statement.query_row([member.0, session.0, stop, after], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The oldest unread messages, in the order in which they were sent.
    pub fn unread_messages(
        &self,
        member: MemberId,
        session: SessionId,
        limit: i64,
    ) -> Result<Vec<Shown>> {
        let mut statement = self.conn.prepare_cached(UNREAD_MESSAGES)?;
        let rows = statement.query_map([member.0, session.0, limit], shown)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Hands messages out to a session: they are unread for it no longer, and read when the
    /// handing is confirmed.
    pub fn hand_out(&self, handing: &Handing, now: Time) -> Result<()> {
        let conn = self.writing()?;
        let mut statement = conn.prepare_cached(
            "UPDATE delivery SET handed_at = ?3, handed_session = ?4, n_handed = n_handed + 1
             WHERE message_id = ?1 AND member_id = ?2 AND is_read = 0",
        )?;
        for message in &handing.messages {
            statement.execute([message.0, handing.member.0, now.0, handing.session.0])?;
        }
        Ok(())
    }

    /// The handed messages count as read. Returns those that did not before.
    pub fn confirm(&self, handing: &Handing, now: Time) -> Result<Vec<MessageId>> {
        let read = concat!("UPDATE delivery SET is_read = 1, read_at = ?4 WHERE ", handed!());
        self.settle(handing, read, now)
    }

    /// The handed messages never reached the session: unread again, at once. Where that is not
    /// certain, they are marked as handed out before, and that once: a client that cancels whatever
    /// it has the answer to would be given the same mail for ever.
    pub fn give_back(&self, handing: &Handing, now: Time) -> Result<Vec<MessageId>> {
        let unread = if handing.may_have_arrived {
            concat!(
                "UPDATE delivery SET handed_at = NULL, handed_session = NULL
                 WHERE n_handed < 2 AND ?4 NOTNULL AND ",
                handed!()
            )
        } else {
            concat!(
                "UPDATE delivery SET handed_at = NULL, handed_session = NULL, n_handed = n_handed - 1
                 WHERE ?4 NOTNULL AND ",
                handed!()
            )
        };
        self.settle(handing, unread, now)
    }

    fn settle(&self, handing: &Handing, sql: &str, now: Time) -> Result<Vec<MessageId>> {
        let mut statement = self.writing()?.prepare_cached(sql)?;
        let mut settle = |member: MemberId, message: &MessageId| {
            statement.execute([member.0, message.0, handing.session.0, now.0])
        };
        let mut changed = Vec::new();
        for message in &handing.messages {
            let mut n_rows = settle(handing.member, message)?;
            // A session's deliveries may have moved to another member; the command line's not.
            if n_rows == 0
                && handing.session != SessionId::COMMAND_LINE
                && let Some(member) = self.handed_to(*message, handing.session)?
            {
                n_rows = settle(member, message)?;
            }
            if n_rows > 0 {
                changed.push(*message);
            }
        }
        Ok(changed)
    }

    /// At which member a message lies that was handed to a session and is not read.
    fn handed_to(&self, message: MessageId, session: SessionId) -> Result<Option<MemberId>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT member_id FROM member CROSS JOIN delivery
             ON member_id = member.id AND is_read = 0 AND message_id = ?1 AND handed_session = ?2",
        )?;
        let member = statement.query_row([message.0, session.0], |row| row.get(0));
        Ok(member.optional()?.map(MemberId))
    }

    pub fn insert_message(&self, new: &NewMessage<'_>, now: Time) -> Result<MessageId> {
        let conn = self.writing()?;
        let (thread, answers_task): (Option<i64>, Option<i64>) = match new.reply_to {
            Some(parent) => conn
                .prepare_cached(
                    "SELECT thread_id, coalesce(answers_task, task_id) FROM message WHERE id = ?1",
                )?
                .query_row([parent.0], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?
                .unwrap_or_default(),
            None => (None, None),
        };
        let mut statement = conn.prepare_cached(
            "INSERT INTO message (id, sender_id, kind, audience, is_broadcast, recipient_id, reply_to,
                                  task_id, about_id, answers_task, thread_id, body, sent_at)
             VALUES (coalesce((SELECT max(id) FROM message), (SELECT last_message FROM about)) + 1,
                     ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
                     coalesce(?10, (SELECT max(id) FROM message) + 1, (SELECT last_message FROM about) + 1),
                     ?11, ?12)",
        )?;
        let id = statement.insert(params![
            new.sender.0,
            new.kind.as_str(),
            new.audience,
            new.is_broadcast,
            new.recipient.map(|member| member.0),
            new.reply_to.map(|message| message.0),
            new.task.map(|task| task.0),
            new.about.map(|member| member.0),
            answers_task,
            thread,
            new.body,
            now.0,
        ])?;
        Ok(MessageId(id))
    }

    /// The id of the first message that is there.
    pub fn first_message(&self) -> Result<Option<MessageId>> {
        let mut statement = self.conn.prepare_cached("SELECT min(id) FROM message")?;
        Ok(statement.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(MessageId))
    }

    /// The id of the last message.
    pub fn last_message(&self) -> Result<MessageId> {
        let mut statement = self.conn.prepare_cached("SELECT coalesce(max(id), 0) FROM message")?;
        Ok(MessageId(statement.query_row([], |row| row.get(0))?))
    }

    /// Puts a message into a member's inbox.
    pub fn deliver(&self, message: MessageId, sender: MemberId, member: MemberId) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "INSERT INTO delivery (message_id, member_id, sender_id) VALUES (?1, ?2, ?3)",
            )?
            .execute([message.0, member.0, sender.0])?;
        Ok(())
    }

    /// Who sits down gets the broadcasts of the last hour and the human's of the last day, as far
    /// as it does not have them and did not write them.
    pub fn deliver_late_broadcasts(&self, member: MemberId, now: Time) -> Result<usize> {
        let n_rows = self.writing()?.prepare_cached(LATE_BROADCASTS)?.execute(params![
            member.0,
            now.before(DAY).0,
            now.before(HOUR).0,
            limits::LATE_BROADCASTS
        ])?;
        Ok(n_rows)
    }

    /// One message, whoever asks.
    pub fn message(&self, id: MessageId) -> Result<Option<Shown>> {
        let sql = concat!("SELECT ", shown_columns!("0", "0"), " FROM message WHERE id = ?1");
        let mut statement = self.conn.prepare_cached(sql)?;
        Ok(statement.query_row([id.0], shown).optional()?)
    }

    /// Who wrote a message and to whom, without its body.
    pub fn sent(&self, id: MessageId) -> Result<Option<Sent>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, sender_id, recipient_id, audience, is_broadcast, about_id FROM message
             WHERE id = ?1",
        )?;
        Ok(statement
            .query_row([id.0], |row| {
                Ok(Sent {
                    id: MessageId(row.get(0)?),
                    sender: MemberId(row.get(1)?),
                    recipient: row.get::<_, Option<i64>>(2)?.map(MemberId),
                    audience: bare(row, 3)?,
                    is_broadcast: row.get(4)?,
                    about: row.get::<_, Option<i64>>(5)?.map(MemberId),
                })
            })
            .optional()?)
    }

    /// Whether the member sent the message or was sent it, also under a name it had before.
    pub fn is_party(&self, id: MessageId, member: MemberId) -> Result<bool> {
        let mut statement = self.conn.prepare_cached(IS_PARTY)?;
        Ok(statement.query_row([id.0, member.0], |row| row.get(0))?)
    }

    /// Each recipient's part in a message.
    pub fn standings(&self, id: MessageId) -> Result<Vec<Standing>> {
        let mut statement = self.conn.prepare_cached(STANDINGS)?;
        let rows = statement.query_map([id.0], |row| {
            Ok(Standing {
                member: row.get(0)?,
                handed_at: row.get::<_, Option<i64>>(1)?.map(Time),
                handed_session: row.get::<_, Option<i64>>(2)?.map(SessionId),
                read_at: row.get::<_, Option<i64>>(3)?.map(Time),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn name_of(&self, member: MemberId) -> Result<String> {
        let mut statement = self.conn.prepare_cached("SELECT name FROM member WHERE id = ?1")?;
        Ok(statement.query_row([member.0], |row| bare(row, 0))?)
    }
}

/// Reads [`shown_columns`], with which the row begins.
pub(super) fn shown(row: &Row<'_>) -> rusqlite::Result<Shown> {
    Ok(Shown {
        id: MessageId(row.get(0)?),
        sender_id: MemberId(row.get(1)?),
        kind: Kind::from_column(&row.get::<_, String>(2)?),
        audience: bare(row, 3)?,
        is_broadcast: row.get(4)?,
        recipient: row.get::<_, Option<i64>>(5)?.map(MemberId),
        reply_to: row.get::<_, Option<i64>>(6)?.map(MessageId),
        body: row.get(7)?,
        sent_at: Time(row.get(8)?),
        late: row.get(9)?,
        again: row.get::<_, i64>(10)? > 0,
        sender: bare(row, 11)?,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rusqlite::Connection;

    use super::{
        super::schema, COUNT_UNREAD, COUNT_UNREAD_AFTER, IS_PARTY, Kind, LATE_BROADCASTS, MemberId,
        NewMessage, STANDINGS, TaskId, Time, Tx, UNREAD, UNREAD_MESSAGES,
    };
    use crate::store::plan_of;

    #[test]
    fn mail_is_found_by_the_key() {
        for sql in [
            UNREAD,
            COUNT_UNREAD,
            COUNT_UNREAD_AFTER,
            UNREAD_MESSAGES,
            STANDINGS,
            IS_PARTY,
            LATE_BROADCASTS,
        ] {
            let plan = plan_of(sql);
            let by_key = "PRIMARY KEY (member_id=? AND is_read=?";
            assert!(plan.iter().any(|step| step.contains(by_key)), "{sql}: {plan:?}");
        }
    }

    /// Also one that answers an answer.
    #[test]
    fn answers_in_the_thread_of_a_notice_are_its_tasks() {
        let conn = Connection::open_in_memory().unwrap();
        schema::migrate(&conn, 0).unwrap();
        let tx = Tx { conn: &conn, writable: true, epoch: Cell::default() };
        let send = |reply_to, task| {
            let new = NewMessage {
                sender: MemberId(1),
                kind: Kind::Message,
                audience: "human",
                is_broadcast: false,
                recipient: None,
                reply_to,
                task,
                about: None,
                body: "x",
            };
            tx.insert_message(&new, Time(0)).unwrap()
        };
        let notice = send(None, Some(TaskId(9)));
        let answer = send(Some(notice), None);
        let other = send(None, None);
        let next = send(Some(answer), None);
        send(Some(other), None);
        let answers = tx.task_replies(TaskId(9), 10).unwrap();
        assert_eq!(answers.iter().map(|it| it.id).collect::<Vec<_>>(), [answer, next]);
    }
}
