//! The history of messages: looked at, never handed out.

use rusqlite::{OptionalExtension as _, named_params};

use super::{
    Tx,
    messages::{Shown, shown, shown_columns},
};
use crate::{
    domain::{
        fold::Search,
        id::{MemberId, MessageId},
        limits,
    },
    error::Result,
};

/// Which part of the history to look at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter {
    pub from: Option<MemberId>,
    /// Any message of the thread.
    pub thread: Option<MessageId>,
    /// Only ids below this.
    pub before: Option<MessageId>,
}

/// What a search came to, newest first.
#[derive(Debug)]
pub struct Found {
    pub messages: Vec<Shown>,
    /// Where it ended because it had looked at enough: nothing below this id was looked at.
    pub stopped_at: Option<MessageId>,
}

/// A message as the member `:me` sees it, or may not: what it sent or was sent, and broadcasts.
macro_rules! seen {
    () => {
        // Under a name that one had before, one is the same member.
        concat!(
            "WITH mine AS MATERIALIZED (SELECT id FROM member WHERE id = :me OR moved_to = :me)
             SELECT ",
            shown_columns!(
                "coalesce((SELECT late FROM delivery WHERE member_id = :me AND is_read IN (0, 1)
                                                       AND message_id = message.id), 0)",
                "0"
            ),
            " FROM message
             WHERE (:all OR is_broadcast OR sender_id IN mine
                    OR EXISTS (SELECT 1 FROM delivery WHERE member_id IN mine AND is_read IN (0, 1)
                                                        AND message_id = message.id))
               AND "
        )
    };
}

/// The part of the history that a [`Filter`] stands for.
macro_rules! filtered {
    () => {
        "id < coalesce(:before, 9223372036854775807)
         AND (:from IS NULL
              OR sender_id IN (SELECT id FROM member WHERE id = :from OR moved_to = :from))
         AND (:thread IS NULL OR thread_id = :thread)
         ORDER BY id DESC"
    };
}

const HISTORY: &str = concat!(seen!(), filtered!(), " LIMIT :limit + 0");

const ONE: &str = concat!(seen!(), "id = :id");

const BODIES: &str =
    concat!("SELECT id, body, sender_id, is_broadcast FROM message WHERE ", filtered!());

impl Tx<'_> {
    /// What the member sent or was sent, and broadcasts; newest first. Hands nothing out.
    pub fn history(
        &self,
        member: MemberId,
        sees_all: bool,
        filter: &Filter,
        limit: i64,
    ) -> Result<Vec<Shown>> {
        let mut statement = self.conn.prepare_cached(HISTORY)?;
        let rows = statement.query_map(
            named_params! {
                ":me": member.0,
                ":all": sees_all,
                ":before": filter.before.map(|id| id.0),
                ":from": filter.from.map(|id| id.0),
                ":thread": self.thread_of(filter)?,
                ":limit": limit,
            },
            shown,
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The part of the history that holds the words, at most `limit` messages; ends after so many
    /// messages and bytes that nobody waits long for it.
    ///
    /// The words are looked for first: to look up who was sent a message costs ten times as much.
    pub fn search(
        &self,
        member: MemberId,
        sees_all: bool,
        filter: &Filter,
        search: &mut Search,
        limit: usize,
    ) -> Result<Found> {
        let mine = self.names_of(member)?;
        let mut bodies = self.conn.prepare_cached(BODIES)?;
        let mut one = self.conn.prepare_cached(ONE)?;
        let mut rows = bodies.query(named_params! {
            ":before": filter.before.map(|id| id.0),
            ":from": filter.from.map(|id| id.0),
            ":thread": self.thread_of(filter)?,
        })?;
        let mut found = Found { messages: Vec::new(), stopped_at: None };
        let (mut n_messages, mut n_bytes) = (0, 0);
        let mut last = None;
        while found.messages.len() < limit
            && let Some(row) = rows.next()?
        {
            if n_messages >= limits::SEARCH_MESSAGES || n_bytes >= limits::SEARCH_BYTES {
                found.stopped_at = last;
                break;
            }
            let id: i64 = row.get(0)?;
            let body = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
            last = Some(MessageId(id));
            n_messages += 1;
            n_bytes += body.len();
            if search.finds(body)
                && (sees_all
                    || row.get(3)?
                    || mine.contains(&row.get(2)?)
                    || self.was_sent_to(id, &mine)?)
            {
                let which = named_params! {":me": member.0, ":all": sees_all, ":id": id};
                found.messages.extend(one.query_row(which, shown).optional()?);
            }
        }
        Ok(found)
    }

    /// The member and those that it was before it took another name.
    fn names_of(&self, member: MemberId) -> Result<Vec<i64>> {
        let mut statement =
            self.conn.prepare_cached("SELECT id FROM member WHERE id = ?1 OR moved_to = ?1")?;
        let rows = statement.query_map([member.0], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn was_sent_to(&self, message: i64, members: &[i64]) -> Result<bool> {
        let mut statement = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM delivery
                            WHERE member_id = ?2 AND is_read IN (0, 1) AND message_id = ?1)",
        )?;
        for member in members {
            if statement.query_row([message, *member], |row| row.get(0))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn thread_of(&self, filter: &Filter) -> Result<Option<i64>> {
        let Some(message) = filter.thread else { return Ok(None) };
        let mut statement =
            self.conn.prepare_cached("SELECT thread_id FROM message WHERE id = ?1")?;
        Ok(statement.query_row([message.0], |row| row.get(0)).optional()?)
    }
}

#[cfg(test)]
mod tests {
    use super::{BODIES, HISTORY, ONE};
    use crate::store::plan_of;

    #[test]
    fn whose_mail_it_was_is_found_by_the_key() {
        for sql in [HISTORY, ONE, BODIES] {
            let plan = plan_of(sql);
            assert!(!plan.iter().any(|step| step.contains("SCAN delivery")), "{plan:?}");
        }
    }
}
