//! What the board's page looks at, and the tokens with which a person enters it.

use std::collections::HashMap;

use rusqlite::params;

use super::{
    Shown, Tx,
    messages::{shown, shown_columns},
};
use crate::{
    domain::{
        id::MessageId,
        name,
        time::{MINUTE, Time},
    },
    error::Result,
};

/// How long a token is good for a way in.
pub const TOKEN_LIFE: i64 = 15 * MINUTE;

/// A message as everybody may see it, and what became of it.
#[derive(Debug, Clone)]
pub struct Posted {
    pub message: Shown,
    /// The first message of the thread; itself where it begins one.
    pub thread: MessageId,
    pub standing: Counts,
}

/// How many a message was for, and how many of them were handed it and have read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub n: i64,
    pub handed: i64,
    pub read: i64,
}

macro_rules! posted {
    ($which:literal) => {
        concat!(
            "SELECT ",
            shown_columns!("0", "0"),
            ", thread_id FROM message WHERE id ",
            $which,
            " LIMIT ?2 + 0"
        )
    };
}

const BEFORE: &str = posted!("< ?1 ORDER BY id DESC");

const AFTER: &str = posted!("> ?1 ORDER BY id");

const STANDINGS: &str = "SELECT message_id, count(*), count(handed_at), count(read_at)
     FROM member CROSS JOIN delivery ON member_id = member.id AND is_read IN (0, 1)
                                    AND message_id BETWEEN ?1 AND ?2
     GROUP BY message_id ORDER BY message_id";

impl Tx<'_> {
    /// The messages right before this one, oldest first.
    pub fn posted_before(&self, before: MessageId, limit: i64) -> Result<Vec<Posted>> {
        let mut posted = self.posted(BEFORE, before, limit)?;
        posted.reverse();
        Ok(posted)
    }

    /// The messages right after this one, oldest first.
    pub fn posted_after(&self, after: MessageId, limit: i64) -> Result<Vec<Posted>> {
        self.posted(AFTER, after, limit)
    }

    fn posted(&self, sql: &str, id: MessageId, limit: i64) -> Result<Vec<Posted>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map([id.0, limit], |row| {
            Ok(Posted {
                message: shown(row)?,
                thread: MessageId(row.get("thread_id")?),
                standing: Counts::default(),
            })
        })?;
        let mut posted: Vec<Posted> = rows.collect::<Result<_, _>>()?;
        let ids = || posted.iter().map(|it| it.message.id);
        if let (Some(first), Some(last)) = (ids().min(), ids().max()) {
            let counts: HashMap<MessageId, Counts> =
                self.standings_between(first, last)?.into_iter().collect();
            for it in &mut posted {
                it.standing = counts.get(&it.message.id).copied().unwrap_or_default();
            }
        }
        Ok(posted)
    }

    /// What became of these messages, both included; without those that were for nobody.
    ///
    /// Their deliveries are looked for at each member: there they lie one behind the other.
    pub fn standings_between(
        &self,
        first: MessageId,
        last: MessageId,
    ) -> Result<Vec<(MessageId, Counts)>> {
        let mut statement = self.conn.prepare_cached(STANDINGS)?;
        let rows = statement.query_map([first.0, last.0], |row| {
            let counts = Counts { n: row.get(1)?, handed: row.get(2)?, read: row.get(3)? };
            Ok((MessageId(row.get(0)?), counts))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Remembers what a token for the page hashes to; those that nobody can use any more go.
    pub fn insert_web_token(&self, hash: &str, now: Time) -> Result<()> {
        let conn = self.writing()?;
        conn.prepare_cached("DELETE FROM token WHERE kind = 'web' AND made_at <= ?1")?
            .execute([now.before(TOKEN_LIFE).0])?;
        conn.prepare_cached(
            "INSERT INTO token (kind, name, hash, made_at) VALUES ('web', ?1, ?2, ?3)",
        )?
        .execute(params![name::HUMAN, hash, now.0])?;
        Ok(())
    }

    /// Whether this is what a token hashes to that was not used yet and is not too old.
    pub fn has_web_token(&self, hash: &str, now: Time) -> Result<bool> {
        let mut statement = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM token
                            WHERE kind = 'web' AND hash = ?1 AND ended_at IS NULL AND made_at > ?2)",
        )?;
        Ok(statement.query_row(params![hash, now.before(TOKEN_LIFE).0], |row| row.get(0))?)
    }

    /// Uses a token up. `false`: it is none, was used before, or is too old.
    pub fn use_web_token(&self, hash: &str, now: Time) -> Result<bool> {
        let n_rows = self
            .writing()?
            .prepare_cached(
                "UPDATE token SET used_at = ?2, ended_at = ?2
                 WHERE kind = 'web' AND hash = ?1 AND ended_at IS NULL AND made_at > ?3",
            )?
            .execute(params![hash, now.0, now.before(TOKEN_LIFE).0])?;
        Ok(n_rows > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{AFTER, BEFORE, STANDINGS};
    use crate::store::plan_of;

    #[test]
    fn the_page_looks_at_no_more_than_it_shows() {
        for sql in [AFTER, BEFORE, STANDINGS] {
            let plan = plan_of(sql);
            let scans = |step: &&String| step.starts_with("SCAN") && !step.contains("member");
            assert_eq!(plan.iter().find(scans), None, "{sql}: {plan:?}");
        }
    }
}
