//! The shared context: keys with values and versions.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Tx, bare};
use crate::{
    domain::{id::MemberId, time::Time},
    error::Result,
};

/// A key's row.
#[derive(Debug, Clone)]
pub struct ContextEntry {
    pub key: String,
    /// None where it was removed.
    pub value: Option<String>,
    pub version: i64,
    /// Who wrote this version, or removed the one before.
    pub author: String,
    pub updated_at: Time,
}

/// A key that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextChange {
    pub key: String,
    pub is_removed: bool,
    pub author: String,
}

impl ContextEntry {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<ContextEntry> {
        Ok(ContextEntry {
            key: row.get("key")?,
            value: row.get("value")?,
            version: row.get("version")?,
            author: bare(row, "author")?,
            updated_at: Time(row.get("updated_at")?),
        })
    }
}

impl Tx<'_> {
    /// A key, also one that was removed.
    pub fn context_entry(&self, key: &str) -> Result<Option<ContextEntry>> {
        let mut statement = self.conn.prepare_cached("SELECT * FROM context WHERE key = ?1")?;
        Ok(statement.query_row([key], ContextEntry::from_row).optional()?)
    }

    /// All keys that have a value, in their order.
    pub fn context(&self) -> Result<Vec<ContextEntry>> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT * FROM context WHERE value IS NOT NULL ORDER BY key")?;
        let rows = statement.query_map([], ContextEntry::from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Writes the next version of a key; without a value, removes it. Returns the version.
    pub fn set_context(
        &self,
        key: &str,
        value: Option<&str>,
        author: &str,
        now: Time,
    ) -> Result<i64> {
        let conn = self.writing()?;
        let mut statement = conn.prepare_cached(
            "INSERT INTO context (key, value, version, author, updated_at, change)
             VALUES (?1, ?2, 1, ?3, ?4, (SELECT coalesce(max(change), 0) + 1 FROM context))
             ON CONFLICT DO UPDATE SET value = excluded.value, version = version + 1,
                 author = excluded.author, updated_at = excluded.updated_at,
                 change = excluded.change",
        )?;
        statement.execute(params![key, value, author, now.0])?;
        let mut statement = conn.prepare_cached("SELECT version FROM context WHERE key = ?1")?;
        Ok(statement.query_row([key], |row| row.get(0))?)
    }

    /// The keys that others have changed since the member was shown the context, latest first.
    pub fn context_changed_since(&self, member: MemberId) -> Result<Vec<ContextChange>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT key, value IS NULL, author FROM context
             WHERE change > (SELECT context_seen FROM member WHERE id = ?1)
               AND author <> (SELECT name FROM member WHERE id = ?1) COLLATE NOCASE
               AND (value IS NOT NULL OR (SELECT context_seen FROM member WHERE id = ?1) > 0)
             ORDER BY change DESC",
        )?;
        let rows = statement.query_map([member.0], |row| {
            Ok(ContextChange { key: row.get(0)?, is_removed: row.get(1)?, author: bare(row, 2)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The member was shown the context as it is now.
    pub fn mark_context_seen(&self, member: MemberId) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "UPDATE member SET context_seen = (SELECT coalesce(max(change), 0) FROM context)
                 WHERE id = ?1",
            )?
            .execute([member.0])?;
        Ok(())
    }
}
