//! Members, the keys by which they are found again, and their sessions.

use rusqlite::{OptionalExtension as _, Row, named_params, params};

use super::Tx;
use crate::{
    domain::{
        flood::Window,
        id::{MemberId, MessageId, SessionId},
        member::Presence,
        name::MemberName,
        time::Time,
    },
    error::{Error, Result},
};

/// A member's row.
#[derive(Debug, Clone)]
pub struct Member {
    pub id: MemberId,
    pub name: MemberName,
    pub kind: String,
    /// The human and members that the command line speaks as.
    pub seatless: bool,
    /// A helper that another session started.
    pub sub: bool,
    pub role: String,
    pub note: String,
    pub capabilities: Vec<String>,
    pub joined_at: Time,
    pub heartbeat_at: Option<Time>,
    pub left_at: Option<Time>,
    pub moved_to: Option<MemberId>,
    /// The session that sits there, or sat there last.
    pub session: Option<SessionId>,
    pub window: Window,
}

/// A member to be.
#[derive(Debug)]
pub struct Joining<'a> {
    pub name: &'a MemberName,
    pub seatless: bool,
    pub sub: bool,
}

/// A session as it sits down.
#[derive(Debug, Clone)]
pub struct Session {
    pub family: String,
    pub key: Option<String>,
    pub client: String,
    pub client_version: String,
    pub server_version: String,
    /// The process of its server; 0 where it comes over the network.
    pub pid: u32,
    pub checkout: String,
    pub branch: Option<String>,
    pub began_at: Time,
}

impl Member {
    pub fn is_human(&self) -> bool {
        self.kind == "human"
    }

    /// This program's own member, which is nobody to write to.
    pub fn is_program(&self) -> bool {
        self.kind == "program"
    }

    /// What its state follows from; `held` tells whether a session sits on the seat.
    pub fn presence(&self, held: bool) -> Presence {
        Presence {
            seatless: self.seatless && !held,
            human: self.is_human(),
            sub: self.sub,
            held,
            heartbeat_at: self.heartbeat_at,
            left_at: self.left_at,
        }
    }

    /// By position: a new column goes to the end, and every call reads rows of this kind.
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Member> {
        let name: String = row.get(1)?;
        let capabilities: String = row.get(7)?;
        Ok(Member {
            id: MemberId(row.get(0)?),
            // What is in the table was checked when it came in; a foreign hand's row is shown as
            // what it is not.
            name: MemberName::any(&name)
                .or_else(|_| MemberName::any("unreadable-name"))
                .map_err(|_| rusqlite::Error::InvalidQuery)?,
            kind: row.get(2)?,
            seatless: row.get(3)?,
            sub: row.get(4)?,
            role: row.get(5)?,
            note: row.get(6)?,
            capabilities: serde_json::from_str(&capabilities).unwrap_or_default(),
            joined_at: Time(row.get(8)?),
            heartbeat_at: row.get::<_, Option<i64>>(9)?.map(Time),
            left_at: row.get::<_, Option<i64>>(10)?.map(Time),
            moved_to: row.get::<_, Option<i64>>(11)?.map(MemberId),
            session: row.get::<_, Option<i64>>(12)?.map(SessionId),
            window: Window { began_at: Time(row.get(13)?), n_messages: row.get(14)? },
        })
    }
}

impl Tx<'_> {
    /// Everybody but this program, in the order in which they joined.
    pub fn members(&self) -> Result<Vec<Member>> {
        let mut statement =
            self.conn.prepare_cached("SELECT * FROM member WHERE kind <> 'program' ORDER BY id")?;
        let rows = statement.query_map([], Member::from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub fn member(&self, id: MemberId) -> Result<Member> {
        let mut statement = self.conn.prepare_cached("SELECT * FROM member WHERE id = ?1")?;
        statement
            .query_row([id.0], Member::from_row)
            .optional()?
            .ok_or_else(|| Error::internal(format!("member {} is not in the table", id.0)))
    }

    /// By name, ignoring case.
    pub fn member_named(&self, name: &str) -> Result<Option<Member>> {
        let mut statement = self.conn.prepare_cached("SELECT * FROM member WHERE name = ?1")?;
        Ok(statement.query_row([name], Member::from_row).optional()?)
    }

    /// The member that a client's session with this key had.
    pub fn member_with_key(&self, family: &str, key: &str) -> Result<Option<Member>> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT member_id FROM member_key WHERE family = ?1 AND key = ?2")?;
        let id: Option<i64> = statement.query_row([family, key], |row| row.get(0)).optional()?;
        id.map(|id| self.member(MemberId(id))).transpose()
    }

    /// The key of the session that sits there, or sat there last.
    pub fn last_key(&self, member: &Member) -> Result<Option<(String, Option<String>)>> {
        let Some(session) = member.session else { return Ok(None) };
        let mut statement =
            self.conn.prepare_cached("SELECT family, key FROM session WHERE id = ?1")?;
        Ok(statement.query_row([session.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    pub fn session(&self, id: SessionId) -> Result<Option<Session>> {
        let mut statement = self.conn.prepare_cached("SELECT * FROM session WHERE id = ?1")?;
        Ok(statement
            .query_row([id.0], |row| {
                Ok(Session {
                    family: row.get("family")?,
                    key: row.get("key")?,
                    client: row.get("client")?,
                    client_version: row.get("client_version")?,
                    server_version: row.get("server_version")?,
                    pid: row.get("pid")?,
                    checkout: row.get("checkout")?,
                    branch: row.get("branch")?,
                    began_at: Time(row.get("began_at")?),
                })
            })
            .optional()?)
    }

    pub fn insert_member(&self, joining: &Joining<'_>, now: Time) -> Result<MemberId> {
        let mut statement = self.writing()?.prepare_cached(
            "INSERT INTO member (name, kind, seatless, sub, joined_at, heartbeat_at)
             VALUES (?1, 'agent', ?2, ?3, ?4, ?4)",
        )?;
        let id = statement.insert(params![
            joining.name.as_str(),
            joining.seatless,
            joining.sub,
            now.0
        ])?;
        Ok(MemberId(id))
    }

    pub fn insert_session(&self, member: MemberId, session: &Session) -> Result<SessionId> {
        let mut statement = self.writing()?.prepare_cached(
            "INSERT INTO session (member_id, family, key, client, client_version, server_version,
                                  pid, checkout, branch, began_at)
             VALUES (:member, :family, :key, :client, :client_version, :server_version,
                     :pid, :checkout, :branch, :began_at)",
        )?;
        let id = statement.insert(named_params! {
            ":member": member.0,
            ":family": session.family,
            ":key": session.key,
            ":client": session.client,
            ":client_version": session.client_version,
            ":server_version": session.server_version,
            ":pid": session.pid,
            ":checkout": session.checkout,
            ":branch": session.branch,
            ":began_at": session.began_at.0,
        })?;
        Ok(SessionId(id))
    }

    /// A session sits on the member's seat from now on: the member is back, if it had left.
    pub fn seat_member(&self, member: MemberId, session: SessionId, now: Time) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "UPDATE member SET session_id = ?2, heartbeat_at = ?3, seatless = 0,
                        left_at = NULL, moved_to = NULL
                 WHERE id = ?1",
            )?
            .execute([member.0, session.0, now.0])?;
        self.writing()?
            .prepare_cached("UPDATE session SET member_id = ?1 WHERE id = ?2")?
            .execute([member.0, session.0])?;
        Ok(())
    }

    /// A command speaks as this member from now on: the member is back, if it had left.
    pub fn speak_as(&self, member: MemberId) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "UPDATE member SET left_at = NULL, moved_to = NULL, seatless = 1 WHERE id = ?1",
            )?
            .execute([member.0])?;
        Ok(())
    }

    /// From now on the key finds this member.
    pub fn remember_key(&self, family: &str, key: &str, member: MemberId) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "INSERT INTO member_key (family, key, member_id) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET member_id = excluded.member_id",
            )?
            .execute(params![family, key, member.0])?;
        Ok(())
    }

    /// The session's own row, too, so that the seat is known to have been this key's.
    pub fn set_session_key(&self, session: SessionId, key: &str) -> Result<()> {
        self.writing()?
            .prepare_cached(
                // By its client it is another session now, to whose model nothing was announced.
                "UPDATE session SET key = ?2, announced_to = 0, held_to = 0 WHERE id = ?1",
            )?
            .execute(params![session.0, key])?;
        Ok(())
    }

    pub fn beat(&self, member: MemberId, now: Time) -> Result<()> {
        self.writing()?
            .prepare_cached("UPDATE member SET heartbeat_at = ?2 WHERE id = ?1")?
            .execute([member.0, now.0])?;
        Ok(())
    }

    pub fn set_window(&self, member: MemberId, window: Window) -> Result<()> {
        self.writing()?
            .prepare_cached("UPDATE member SET window_at = ?2, window_n = ?3 WHERE id = ?1")?
            .execute(params![member.0, window.began_at.0, window.n_messages])?;
        Ok(())
    }

    pub fn set_note(&self, member: MemberId, note: &str) -> Result<()> {
        self.writing()?
            .prepare_cached("UPDATE member SET note = ?2 WHERE id = ?1")?
            .execute(params![member.0, note])?;
        Ok(())
    }

    pub fn set_profile(
        &self,
        member: MemberId,
        role: &str,
        note: &str,
        capabilities: &[String],
    ) -> Result<()> {
        let capabilities = serde_json::to_string(capabilities)
            .map_err(|err| Error::internal("cannot write capabilities").source(err))?;
        self.writing()?
            .prepare_cached(
                "UPDATE member SET role = ?2, note = ?3, capabilities = ?4 WHERE id = ?1",
            )?
            .execute(params![member.0, role, note, capabilities])?;
        Ok(())
    }

    pub fn leave(&self, member: MemberId, now: Time) -> Result<()> {
        self.writing()?
            .prepare_cached("UPDATE member SET left_at = ?2, moved_to = NULL WHERE id = ?1")?
            .execute([member.0, now.0])?;
        self.writing()?
            .prepare_cached("DELETE FROM member_key WHERE member_id = ?1")?
            .execute([member.0])?;
        Ok(())
    }

    /// The members whose latest session had this key.
    pub fn members_with_session_key(&self, family: &str, key: &str) -> Result<Vec<Member>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT member.* FROM member JOIN session ON session.id = session_id
             WHERE session.family = +?1 AND session.key = +?2",
        )?;
        let rows = statement.query_map([family, key], Member::from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The members where a session sits or sat last, with the process that serves it.
    pub fn served_members(&self) -> Result<Vec<(Member, u32)>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT member.*, session.pid FROM member JOIN session ON session.id = session_id
             WHERE NOT seatless AND session.pid > 0 ORDER BY session.id DESC",
        )?;
        let rows = statement.query_map([], |row| Ok((Member::from_row(row)?, row.get("pid")?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The members to whom a client's id of a session leads, whichever client it is.
    pub fn members_with_key(&self, key: &str) -> Result<Vec<Member>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT member.* FROM member_key JOIN member ON member.id = member_id WHERE key = +?1",
        )?;
        let rows = statement.query_map([key], Member::from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// A session that sat there by mistake is gone again: the member is as it was before.
    pub fn restore_member(&self, before: &Member) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "UPDATE member SET session_id = ?2, heartbeat_at = ?3, left_at = ?4, moved_to = ?5,
                        seatless = ?6
                 WHERE id = ?1",
            )?
            .execute(params![
                before.id.0,
                before.session.map(|session| session.0),
                before.heartbeat_at.map(|at| at.0),
                before.left_at.map(|at| at.0),
                before.moved_to.map(|member| member.0),
                before.seatless,
            ])?;
        Ok(())
    }

    /// Unread mail that came after a message goes to another member.
    pub fn move_mail_since(&self, last: MessageId, old: MemberId, new: MemberId) -> Result<()> {
        self.writing()?
            .prepare_cached(
                // One that both were sent stays where it is.
                "UPDATE delivery SET member_id = ?3
                 WHERE member_id = ?2 AND is_read = 0 AND message_id > ?1
                   AND NOT EXISTS (
                       SELECT 1 FROM delivery AS theirs
                       WHERE theirs.member_id = ?3 AND theirs.is_read IN (0, 1)
                         AND theirs.message_id = delivery.message_id)",
            )?
            .execute([last.0, old.0, new.0])?;
        Ok(())
    }

    /// What belongs to `old` belongs to `new`: unread mail and keys. The old one answers with the
    /// new name from now on, or is removed where nothing tells of it.
    ///
    /// Returns whether the old member was removed.
    pub fn move_member(&self, old: MemberId, new: MemberId, now: Time) -> Result<bool> {
        let conn = self.writing()?;
        for sql in [
            // A broadcast that reached both is unread again, also where another session read it
            // under the new name; the old name's does not move.
            "UPDATE delivery SET is_read = 0, read_at = NULL, handed_at = NULL, handed_session = NULL
             WHERE member_id = ?2 AND is_read IN (0, 1) AND message_id IN (
                 SELECT message_id FROM delivery WHERE member_id = ?1 AND is_read = 0)",
            "DELETE FROM delivery WHERE member_id = ?1 AND is_read = 0 AND message_id IN (
                 SELECT message_id FROM delivery WHERE member_id = ?2 AND is_read = 0)",
            "UPDATE delivery SET member_id = ?2 WHERE member_id = ?1 AND is_read = 0",
            "UPDATE member_key SET member_id = ?2 WHERE member_id = ?1",
            "UPDATE member SET moved_to = ?2 WHERE moved_to = ?1",
            "UPDATE task SET creator_id = ?2 WHERE creator_id = ?1",
            "UPDATE task SET assignee_id = ?2 WHERE assignee_id = ?1",
            "UPDATE reservation SET member_id = ?2 WHERE member_id = ?1 AND ended_at IS NULL",
            "UPDATE message SET about_id = ?2 WHERE about_id = ?1",
            "UPDATE member SET context_seen = max(context_seen,
                 (SELECT context_seen FROM member WHERE id = ?1)) WHERE id = ?2",
            // What the poll daemon of the old name dealt with, that of the new one does not.
            "UPDATE member SET polled_to = max(coalesce(member.polled_to, 0), old.polled_to)
             FROM (SELECT polled_to FROM member WHERE id = ?1) AS old
             WHERE id = ?2 AND old.polled_to IS NOT NULL",
        ] {
            conn.prepare_cached(sql)?.execute([old.0, new.0])?;
        }
        // Back to a name that it had before: that one is nobody's old name any more.
        conn.prepare_cached("UPDATE member SET moved_to = NULL WHERE id = ?1")?.execute([new.0])?;
        // Sessions before this one stay the old name's unless it goes away.
        let tells: bool = conn
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM message WHERE sender_id = ?1 OR recipient_id = ?1)
                     OR EXISTS (SELECT 1 FROM delivery WHERE member_id = ?1)
                     OR EXISTS (SELECT 1 FROM reservation WHERE member_id = ?1)",
            )?
            .query_row([old.0], |row| row.get(0))?;
        if tells {
            conn.prepare_cached(
                "UPDATE member SET left_at = ?2, moved_to = ?3, session_id = NULL, role = '',
                        note = '', capabilities = '[]'
                 WHERE id = ?1",
            )?
            .execute([old.0, now.0, new.0])?;
        } else {
            conn.prepare_cached("UPDATE session SET member_id = ?2 WHERE member_id = ?1")?
                .execute([old.0, new.0])?;
            conn.prepare_cached("DELETE FROM member WHERE id = ?1")?.execute([old.0])?;
        }
        Ok(!tells)
    }
}
