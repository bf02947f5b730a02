//! Tokens: who may come over the network, and as whom. Only hashes are here.

use rusqlite::{OptionalExtension as _, params};

use super::Tx;
use crate::{
    domain::{name::MemberName, time::Time},
    error::Result,
};

/// A member's token that has not been revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub id: i64,
    pub name: MemberName,
    pub made_at: Time,
    /// When it was last used, within a minute.
    pub used_at: Option<Time>,
}

impl Tx<'_> {
    /// The token with this hash. The index compares hashes, so that how long it takes tells nothing
    /// of the token.
    pub fn token(&self, hash: &str) -> Result<Option<Token>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, name, made_at, used_at FROM token
             WHERE hash = ?1 AND kind = 'bearer' AND ended_at IS NULL",
        )?;
        let row = statement.query_row([hash], columns).optional()?;
        row.map(token).transpose()
    }

    pub fn tokens(&self) -> Result<Vec<Token>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, name, made_at, used_at FROM token
             WHERE kind = 'bearer' AND ended_at IS NULL ORDER BY name, id",
        )?;
        let rows = statement.query_map([], columns)?.collect::<Result<Vec<_>, _>>()?;
        rows.into_iter().map(token).collect()
    }

    /// Whether anybody has a token.
    pub fn has_tokens(&self) -> Result<bool> {
        let mut statement = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM token WHERE kind = 'bearer' AND ended_at IS NULL)",
        )?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    pub fn insert_token(&self, name: &MemberName, hash: &str, now: Time) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "INSERT INTO token (kind, name, hash, made_at) VALUES ('bearer', ?1, ?2, ?3)",
            )?
            .execute(params![name.as_str(), hash, now.0])?;
        Ok(())
    }

    /// Revokes all tokens of a member; how many that were.
    pub fn revoke_tokens(&self, name: &MemberName, now: Time) -> Result<usize> {
        let n_rows = self
            .writing()?
            .prepare_cached(
                "UPDATE token SET ended_at = ?2
                 WHERE name = ?1 AND kind = 'bearer' AND ended_at IS NULL",
            )?
            .execute(params![name.as_str(), now.0])?;
        Ok(n_rows)
    }

    pub fn token_used(&self, id: i64, now: Time) -> Result<()> {
        self.writing()?
            .prepare_cached("UPDATE token SET used_at = ?2 WHERE id = ?1")?
            .execute([id, now.0])?;
        Ok(())
    }
}

type Columns = (i64, String, i64, Option<i64>);

fn columns(row: &rusqlite::Row<'_>) -> rusqlite::Result<Columns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn token((id, name, made_at, used_at): Columns) -> Result<Token> {
    let name = MemberName::any(&name)?;
    Ok(Token { id, name, made_at: Time(made_at), used_at: used_at.map(Time) })
}
