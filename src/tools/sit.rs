//! Sitting down: which member a session or a command is.

use std::sync::Arc;

use super::{
    desk::{Agent, Who},
    log,
};
use crate::{
    domain::{
        id::{MemberId, SessionId},
        name::{self, MemberName},
        time::{MINUTE, Time},
    },
    error::{Error, Result},
    seat::{Seat, Seats},
    store::{Joining, Member, Session, Tx},
    workspace::Workspace,
};

/// A seat that a session with another key left this lately is kept for it.
const KEPT_FOR: i64 = 15 * MINUTE;

/// Who sits here, and by what right.
#[derive(Debug, Clone)]
pub(super) struct Seated {
    pub member: MemberId,
    pub name: MemberName,
    pub is_human: bool,
    /// The lock; none for the human, for looks, and for a command in an agent's shell.
    pub seat: Option<Arc<Seat>>,
    /// As in [`super::Me`].
    pub reads_as: SessionId,
    /// As in [`super::Me`].
    pub hands_as: SessionId,
    /// The table's epoch when it sat down.
    pub epoch: i64,
    pub beat_at: Time,
    /// The client told a key since: it may lead to another member.
    pub key_is_new: bool,
    /// The client has told a key.
    pub has_key: bool,
    /// What the next result is to begin with.
    pub notices: Vec<String>,
}

impl Seated {
    /// The lock still counts: nobody replaced the folder.
    pub(super) fn is_current(&self) -> bool {
        self.seat.as_ref().is_none_or(|seat| seat.is_current())
    }

    /// Nothing has happened that asks to sit down anew.
    pub(super) fn is_good(&self, epoch: i64) -> bool {
        self.epoch == epoch && !self.key_is_new && self.is_current()
    }

    /// The same session on another member's seat.
    pub(super) fn moved_to(self, seat: Seat, member: MemberId) -> Seated {
        Seated { name: seat.name().clone(), seat: Some(Arc::new(seat)), member, ..self }
    }
}

/// What sitting down needs to know.
pub(super) struct Sitting<'a> {
    pub who: &'a Who,
    pub seats: &'a Seats,
    pub workspace: &'a Workspace,
    /// The command changes nothing, so that it may look at a seat where somebody sits.
    pub only_looks: bool,
}

impl Sitting<'_> {
    /// Finds or makes the member, and takes its seat. `before` is where it sat until now.
    pub(super) fn sit(
        &self,
        tx: &Tx<'_>,
        before: Option<&Seated>,
        epoch: i64,
        now: Time,
    ) -> Result<Seated> {
        match self.who {
            Who::Session { agent, wish } => {
                if !tx.is_writable() {
                    return Err(Error::needs_write());
                }
                let place = Place { sitting: self, tx, agent, wish: wish.as_ref(), epoch, now };
                match before {
                    Some(before) if before.epoch != epoch || !before.is_current() => {
                        place.sit_again(before)
                    }
                    Some(before) => place.follow_key(before),
                    None => place.sit_down(),
                }
            }
            Who::Human => {
                let human = tx
                    .member_named(name::HUMAN)?
                    .ok_or_else(|| Error::internal("the table has no member `human`"))?;
                self.as_command(tx, &human, None, SessionId::NOBODY, epoch, now)
            }
            Who::Named(name) => self.sit_named(tx, name, epoch, now),
            Who::Shell { family, key } => self.sit_in_shell(tx, family, key, epoch, now),
        }
    }

    /// `--as NAME`: its seat is taken for the length of the command.
    fn sit_named(&self, tx: &Tx<'_>, name: &MemberName, epoch: i64, now: Time) -> Result<Seated> {
        let member = tx.member_named(name.as_str())?;
        if self.only_looks {
            let member = member.ok_or_else(|| {
                Error::not_found(format!("no member named `{name}`"))
                    .hint("`team-table members` shows who there is")
            })?;
            let session = self.session_of(&member);
            return self.as_command(tx, &member, None, session, epoch, now);
        }
        let Some(seat) = self.seats.claim(name)? else {
            // Only commands speak as it, each for a moment: another one does now.
            if member.is_none_or(|member| member.seatless) {
                return Err(Error::busy(format!("another command speaks as `{name}` now")));
            }
            return Err(Error::refused(format!("a session sits on the seat of `{name}`")).hint(
                "only that session can speak as it; choose another name for --as, or only look: \
                 `inbox --peek`, `members`, `show`",
            ));
        };
        if !tx.is_writable() {
            return Err(Error::needs_write());
        }
        let member = if let Some(member) = member {
            if member.left_at.is_some() {
                log::member(tx, name, "member.joined", None, now)?;
            }
            // Also where a session sat there before: who finds the seat taken now is to know that
            // only a command has it.
            if member.left_at.is_some() || !member.seatless {
                tx.speak_as(member.id)?;
            }
            member
        } else {
            let joining = Joining { name, seatless: true, sub: false };
            let id = tx.insert_member(&joining, now)?;
            log::member(tx, name, "member.joined", None, now)?;
            tx.deliver_late_broadcasts(id, now)?;
            tx.member(id)?
        };
        self.as_command(tx, &member, Some(seat), SessionId::NOBODY, epoch, now)
    }

    /// A command in an agent's shell speaks as the member of that session, beside its server.
    fn sit_in_shell(
        &self,
        tx: &Tx<'_>,
        family: &str,
        key: &str,
        epoch: i64,
        now: Time,
    ) -> Result<Seated> {
        let member = tx.member_with_key(family, key)?.ok_or_else(|| {
            Error::usage(format!(
                "this shell belongs to a {family} session that is not a member yet"
            ))
            .hint(
                "let the agent call one of its team-table tools first, or name a member with --as",
            )
        })?;
        let session = self.session_of(&member);
        self.as_command(tx, &member, None, session, epoch, now)
    }

    /// The session that sits on the member's seat now.
    fn session_of(&self, member: &Member) -> SessionId {
        let session = member.session.filter(|_| self.seats.is_held(&member.name));
        session.unwrap_or(SessionId::NOBODY)
    }

    fn as_command(
        &self,
        tx: &Tx<'_>,
        member: &Member,
        seat: Option<Seat>,
        reads_as: SessionId,
        epoch: i64,
        now: Time,
    ) -> Result<Seated> {
        let looks_at_another = self.only_looks && matches!(self.who, Who::Named(_));
        if tx.is_writable() && !looks_at_another {
            tx.beat(member.id, now)?;
        }
        Ok(Seated {
            member: member.id,
            name: member.name.clone(),
            is_human: member.is_human(),
            seat: seat.map(Arc::new),
            reads_as,
            hands_as: SessionId::COMMAND_LINE,
            epoch,
            beat_at: now,
            key_is_new: false,
            has_key: false,
            notices: Vec::new(),
        })
    }
}

/// Tells a session that it keeps its name, and what it lost.
fn still(what: &str, name: &MemberName, is_empty: bool) -> String {
    let lost = if is_empty { " (register sets your role and note again)" } else { "" };
    format!("{what}; you are still `{name}`{lost}")
}

/// A session over MCP that looks for a seat.
struct Place<'a> {
    sitting: &'a Sitting<'a>,
    tx: &'a Tx<'a>,
    agent: &'a Agent,
    wish: Option<&'a MemberName>,
    epoch: i64,
    now: Time,
}

impl Place<'_> {
    /// For the first time: by the key, by the wish, by the family.
    fn sit_down(&self) -> Result<Seated> {
        if let Some(seat) = self.seat_by_key()? {
            return self.take(seat, true, Vec::new());
        }
        let Some(wish) = self.wish else {
            let seat = self.seat_by_family()?;
            return self.take(seat, false, Vec::new());
        };
        if let Some(seat) = self.sitting.seats.claim(wish)? {
            return self.take(seat, false, Vec::new());
        }
        let seat = self.first_free(wish.variants())?;
        let notice = format!("you are `{}`: somebody sits on the seat of `{wish}`", seat.name());
        self.take(seat, false, vec![notice])
    }

    /// The table or the folder was replaced, or the table was reset: the same name, if it is free.
    fn sit_again(&self, before: &Seated) -> Result<Seated> {
        let what = match self.tx.reset_at()? {
            Some(at) if before.epoch != self.epoch => {
                format!("the table was reset {}", self.now.since(at).ago())
            }
            _ if before.epoch != self.epoch => "the table is a new one".to_owned(),
            _ => "the table's folder was replaced".to_owned(),
        };
        if let Some(seat) = &before.seat
            && seat.is_current()
        {
            let mut seated = self.enter(&before.name, true)?;
            seated.seat = Some(Arc::clone(seat));
            seated.notices = vec![still(&what, &before.name, before.epoch != self.epoch)];
            return Ok(seated);
        }
        if let Some(seat) = self.sitting.seats.claim(&before.name)? {
            let notice = still(&what, &before.name, before.epoch != self.epoch);
            return self.take(seat, true, vec![notice]);
        }
        let seat = self.first_free(before.name.variants())?;
        let notice = format!(
            "{what}, and somebody else sits on the seat of `{}` now; you are `{}`",
            before.name,
            seat.name()
        );
        self.take(seat, false, vec![notice])
    }

    /// A key came with a later call: to the member that it finds, if that seat is free.
    fn follow_key(&self, before: &Seated) -> Result<Seated> {
        let stay = || -> Result<Seated> {
            if let Some(key) = &self.agent.key {
                self.tx.remember_key(&self.agent.family, key, before.member)?;
                self.tx.set_session_key(before.hands_as, key)?;
            }
            self.tx.beat(before.member, self.now)?;
            let has_key = self.agent.key.is_some();
            Ok(Seated { key_is_new: false, has_key, beat_at: self.now, ..before.clone() })
        };
        let is_new_helper = self.agent.parent_key.is_some() && !before.has_key;
        let (seat, by_right) = match self.seat_by_key()? {
            Some(seat) => (seat, true),
            None if is_new_helper => (self.seat_by_family()?, false),
            None => return stay(),
        };
        let name = seat.name().clone();
        let notice = if by_right {
            format!("you are `{name}` again: your client resumed that session")
        } else {
            format!("you are `{name}`")
        };
        let mut seated = self.take(seat, by_right, vec![notice])?;
        let removed = self.tx.move_member(before.member, seated.member, self.now)?;
        log::member(self.tx, &before.name, "member.moved", Some(name.as_str()), self.now)?;
        tracing::debug!(removed, "moved from {} to {name}", before.name);
        // What was handed out under the old session number stays confirmable: it goes by number.
        seated.key_is_new = false;
        Ok(seated)
    }

    fn seat_by_key(&self) -> Result<Option<Seat>> {
        let Some(key) = &self.agent.key else { return Ok(None) };
        match self.tx.member_with_key(&self.agent.family, key)? {
            Some(member) => self.sitting.seats.claim(&member.name),
            None => Ok(None),
        }
    }

    /// The lowest number whose seat is free and is not kept for a session with another key.
    fn seat_by_family(&self) -> Result<Seat> {
        let base = match &self.agent.parent_key {
            Some(parent) => match self.tx.member_with_key(&self.agent.family, parent)? {
                Some(parent) => format!("{}-sub", parent.name),
                None => self.agent.family.clone(),
            },
            None => self.agent.family.clone(),
        };
        for number in 1..=u32::MAX {
            let name = MemberName::numbered(&base, number);
            if let Some(member) = self.tx.member_named(name.as_str())?
                && self.is_kept_for_another(&member)?
            {
                continue;
            }
            if let Some(seat) = self.sitting.seats.claim(&name)? {
                return Ok(seat);
            }
        }
        Err(Error::busy("no seat is free"))
    }

    fn is_kept_for_another(&self, member: &Member) -> Result<bool> {
        let lately = member.heartbeat_at.is_some_and(|at| self.now.since(at).0 < KEPT_FOR);
        if !lately || member.sub {
            return Ok(false);
        }
        Ok(match self.tx.last_key(member)? {
            Some((family, key)) => family != self.agent.family || key != self.agent.key,
            // A command speaks as it.
            None => true,
        })
    }

    fn first_free(&self, names: impl Iterator<Item = MemberName>) -> Result<Seat> {
        for name in names {
            if let Some(seat) = self.sitting.seats.claim(&name)? {
                return Ok(seat);
            }
        }
        Err(Error::busy("no seat is free"))
    }

    fn take(&self, seat: Seat, by_right: bool, notices: Vec<String>) -> Result<Seated> {
        let mut seated = self.enter(seat.name(), by_right)?;
        seated.seat = Some(Arc::new(seat));
        let mut all = notices;
        all.append(&mut seated.notices);
        seated.notices = all;
        Ok(seated)
    }

    /// Writes down that a session sits at this name now. `by_right`: it is the session that sat
    /// there before.
    fn enter(&self, name: &MemberName, by_right: bool) -> Result<Seated> {
        let (tx, now, agent) = (self.tx, self.now, self.agent);
        let mut notices = Vec::new();
        let member = if let Some(member) = tx.member_named(name.as_str())? {
            let old_key = tx.last_key(&member)?;
            let same = by_right
                || old_key == Some((agent.family.clone(), agent.key.clone()))
                || old_key.is_none();
            if !same {
                tx.set_profile(member.id, "", "", &[])?;
                notices.push(self.old_seat(&member)?);
            }
            member.id
        } else {
            let joining = Joining { name, seatless: false, sub: agent.parent_key.is_some() };
            let id = tx.insert_member(&joining, now)?;
            log::member(tx, name, "member.joined", None, now)?;
            id
        };
        let session = tx.insert_session(member, &self.session())?;
        tx.seat_member(member, session, now)?;
        if let Some(key) = &agent.key {
            tx.remember_key(&agent.family, key, member)?;
        }
        tx.deliver_late_broadcasts(member, now)?;
        log::member(tx, name, "session.began", Some(&agent.client), now)?;
        Ok(Seated {
            member,
            name: name.clone(),
            is_human: false,
            seat: None,
            reads_as: session,
            hands_as: session,
            epoch: self.epoch,
            beat_at: now,
            key_is_new: false,
            has_key: agent.key.is_some(),
            notices,
        })
    }

    /// Tells a session that another one sat here before it.
    fn old_seat(&self, member: &Member) -> Result<String> {
        let seen = member
            .heartbeat_at
            .map_or_else(String::new, |at| format!(", last seen {}", self.now.since(at).ago()));
        let unread = self.tx.unread(member.id, SessionId::NOBODY)?.count;
        let mail = match unread {
            0 => "it left no unread mail".to_owned(),
            n => format!(
                "its {} unread {} yours now",
                crate::view::text::messages(n),
                if n == 1 { "is" } else { "are" }
            ),
        };
        Ok(format!("you are `{}`: another session sat here before{seen}; {mail}", member.name))
    }

    fn session(&self) -> Session {
        Session {
            family: self.agent.family.clone(),
            key: self.agent.key.clone(),
            client: self.agent.client.clone(),
            client_version: self.agent.client_version.clone(),
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            checkout: self.sitting.workspace.checkout.display().to_string(),
            branch: self.sitting.workspace.branch.clone(),
            began_at: self.now,
        }
    }
}
