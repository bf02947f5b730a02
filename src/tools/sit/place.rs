//! A session over MCP and its seat: the first one, another one after a key came, and the same one
//! after the table was replaced.

use std::sync::Arc;

use super::{Seated, Sitting};
use crate::{
    domain::{
        id::{MemberId, MessageId, SessionId},
        name::MemberName,
        time::{MINUTE, Time},
    },
    error::{Error, Result},
    platform,
    seat::Seat,
    store::{Joining, Member, Session, Tx},
    tools::{desk::Agent, log},
    view::text,
};

/// A seat that a session with another key left this lately is kept for it.
const KEPT_FOR: i64 = 15 * MINUTE;

/// A session over MCP that looks for a seat.
pub(super) struct Place<'a> {
    pub sitting: &'a Sitting<'a>,
    pub tx: &'a Tx<'a>,
    pub agent: &'a Agent,
    pub wish: Option<&'a MemberName>,
    pub epoch: i64,
    pub now: Time,
}

/// What a session that has not told its key yet found on the seat: the key decides whether the seat
/// was its own, is its own from now on, or was only passed through.
#[derive(Debug, Clone)]
pub(super) struct Unsettled {
    /// The member as it was; none where this session made it.
    before: Option<Member>,
    /// The key of the session that sat there before.
    old_key: Option<(String, Option<String>)>,
    /// The last message of the table at that moment: what came later was meant for this session.
    last_message: MessageId,
    /// What a session is told that finds an old seat.
    notice: String,
}

impl Place<'_> {
    /// For the first time: by the key, by the parent's, by the wish, by the family.
    pub(super) fn sit_down(&self) -> Result<Seated> {
        if let Some(seat) = self.seat_by_key()? {
            return self.take(seat, true, Vec::new());
        }
        if let Some(name) = self.seat_of_twin()? {
            return Err(Error::refused(format!(
                "your client has started team-table twice, and you sit at the table already as \
                 `{name}`, by the other server"
            ))
            .hint(
                "use the other server's tools, and tell your user: it may be set up as a plugin and \
                 in the project's file, and one of the two has to go",
            ));
        }
        if let Some(seat) = self.seat_it_left()? {
            return self.take(seat, true, Vec::new());
        }
        let wish = self.wish.filter(|_| self.agent.parent_key.is_none());
        let Some(wish) = wish else {
            let seat = self.seat_by_family()?;
            return self.take(seat, false, Vec::new());
        };
        if let Some(seat) = self.sitting.seats.claim(wish)? {
            return self.take(seat, self.is_wished_again(wish)?, Vec::new());
        }
        let seat = self.first_free(wish.variants())?;
        let notice = format!("you are `{}`: somebody sits on the seat of `{wish}`", seat.name());
        self.take(seat, false, vec![notice])
    }

    /// A member over the network sits on the seat that its token or address names, or nowhere.
    pub(super) fn sit_on(&self, name: &MemberName, before: Option<&Seated>) -> Result<Seated> {
        if let Some(before) = before
            && before.seat.as_ref().is_some_and(|seat| self.sitting.seats.has(seat))
        {
            return self.sit_again(before);
        }
        let Some(seat) = self.sitting.seats.claim(name)? else {
            return Err(Error::refused(format!("another session sits on the seat of `{name}`"))
                .hint(
                    "it has to end, or this client needs a token or an address of another name",
                ));
        };
        self.take(seat, true, Vec::new())
    }

    /// Who comes back after `deregister` gets its name back, unless somebody has sat there since.
    fn seat_it_left(&self) -> Result<Option<Seat>> {
        let Some(name) = self.sitting.had else { return Ok(None) };
        match self.tx.member_named(name.as_str())? {
            Some(member) if member.left_at.is_some() && member.moved_to.is_none() => {
                self.sitting.seats.claim(name)
            }
            _ => Ok(None),
        }
    }

    /// A client without keys is started with the same wish as before: it is taken for the same.
    fn is_wished_again(&self, wish: &MemberName) -> Result<bool> {
        let Some(member) = self.tx.member_named(wish.as_str())? else { return Ok(false) };
        let old_key = self.tx.last_key(&member)?;
        Ok(!self.agent.tells_keys() && old_key.is_some_and(|(_, key)| key.is_none()))
    }

    /// The table or the folder was replaced, or the table was reset: the same name, if it is free.
    pub(super) fn sit_again(&self, before: &Seated) -> Result<Seated> {
        let what = match self.tx.reset_at()? {
            Some(at) if before.epoch != self.epoch => {
                format!("the table was reset {}", self.now.since(at).ago())
            }
            _ if before.epoch != self.epoch => "the table is a new one".to_owned(),
            _ => "the table's folder was replaced".to_owned(),
        };
        if let Some(seat) = &before.seat
            && self.sitting.seats.has(seat)
        {
            let mut seated = self.enter(&before.name, true)?;
            seated.seat = Some(Arc::clone(seat));
            seated.notices = vec![format!("{what}; you are still `{}`", before.name)];
            return Ok(seated);
        }
        if let Some(seat) = self.sitting.seats.claim(&before.name)? {
            let notice = format!("{what}; you are still `{}`", before.name);
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
    pub(super) fn follow_key(&self, before: &Seated) -> Result<Seated> {
        let is_new_helper = self.agent.parent_key.is_some() && before.unsettled.is_some();
        let (seat, by_right) = match self.seat_by_key()? {
            Some(seat) => (seat, true),
            None if is_new_helper => (self.seat_by_family()?, false),
            None => return self.stay(before),
        };
        let name = seat.name().clone();
        let notice = if by_right {
            format!("you are `{name}` again: your client resumed that session")
        } else {
            format!("you are `{name}`")
        };
        let seated = self.take(seat, by_right, vec![notice])?;
        // Between members that both have a session of their own, only the seat changes.
        if let Some(unsettled) = &before.unsettled {
            self.leave_unsettled(before, unsettled, &seated)?;
        }
        Ok(seated)
    }

    /// The seat was only passed through: it is left as it was found.
    fn leave_unsettled(&self, from: &Seated, was: &Unsettled, to: &Seated) -> Result<()> {
        let Some(before) = &was.before else {
            self.tx.move_member(from.member, to.member, self.now)?;
            return log::member(
                self.tx,
                &from.name,
                "member.moved",
                Some(to.name.as_str()),
                self.now,
            );
        };
        self.tx.move_mail_since(was.last_message, from.member, to.member)?;
        self.tx.restore_member(before)
    }

    /// The key finds no other seat: this one is the session's, with what belongs to it.
    fn stay(&self, before: &Seated) -> Result<Seated> {
        let mut notices = Vec::new();
        if let Some(key) = &self.agent.key {
            self.remember_key(key, before.member)?;
            self.tx.set_session_key(before.hands_as, key)?;
        }
        if let Some(unsettled) = &before.unsettled
            && unsettled.before.is_some()
            && !self.is_key(unsettled.old_key.as_ref())
        {
            self.tx.set_profile(before.member, "", "", &[])?;
            notices.push(unsettled.notice.clone());
        }
        self.tx.beat(before.member, self.now)?;
        Ok(Seated {
            key_is_new: false,
            unsettled: None,
            beat_at: self.now,
            notices,
            ..before.clone()
        })
    }

    /// Whether this is the key of this session. Having none is nobody's key.
    fn is_key(&self, old_key: Option<&(String, Option<String>)>) -> bool {
        self.agent.key.is_some()
            && old_key
                .is_some_and(|(family, key)| *family == self.agent.family && *key == self.agent.key)
    }

    /// From now on the key finds this member; unless it finds one where a session sits, since a
    /// client may give one id to two windows.
    fn remember_key(&self, key: &str, member: MemberId) -> Result<()> {
        match self.tx.member_with_key(&self.agent.family, key)? {
            Some(other) if other.id != member && self.sitting.seats.is_held(&other.name) => Ok(()),
            _ => self.tx.remember_key(&self.agent.family, key, member),
        }
    }

    fn seat_by_key(&self) -> Result<Option<Seat>> {
        let Some(key) = &self.agent.key else { return Ok(None) };
        match self.tx.member_with_key(&self.agent.family, key)? {
            Some(member) => self.sitting.seats.claim(&member.name),
            None => Ok(None),
        }
    }

    /// Where this very session sits by another server that the same process has started: a client
    /// that is told of us in two places, in other words each time, starts both. On two seats, the
    /// session would read only one of its inboxes. Two windows with one id have a process each.
    fn seat_of_twin(&self) -> Result<Option<MemberName>> {
        let (Some(key), Some(parent)) = (&self.agent.key, platform::parent_pid()) else {
            return Ok(None);
        };
        if self.sitting.is_remote {
            return Ok(None);
        }
        for member in self.tx.members_with_session_key(&self.agent.family, key)? {
            let session = member.session.map(|id| self.tx.session(id)).transpose()?.flatten();
            let pid = session.map_or(0, |session| session.pid);
            let is_other = pid != 0 && pid != std::process::id();
            if is_other
                && self.sitting.seats.is_held(&member.name)
                && platform::parent_of(pid) == Some(parent)
            {
                return Ok(Some(member.name));
            }
        }
        Ok(None)
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
        let before = tx.member_named(name.as_str())?;
        let old_key = before.as_ref().map(|member| tx.last_key(member)).transpose()?.flatten();
        let is_own = by_right || self.is_key(old_key.as_ref()) || old_key.is_none();
        let unsettled = if by_right || self.sitting.is_call || !agent.may_tell_another_key() {
            None
        } else {
            Some(self.unsettled(before.clone(), old_key)?)
        };
        let member = if let Some(before) = &before {
            if !is_own && unsettled.is_none() {
                tx.set_profile(before.id, "", "", &[])?;
                notices.push(self.old_seat(before)?);
            }
            before.id
        } else {
            let joining = Joining { name, seatless: false, sub: agent.parent_key.is_some() };
            let id = tx.insert_member(&joining, now)?;
            log::member(tx, name, "member.joined", None, now)?;
            id
        };
        let session = tx.insert_session(member, &self.session())?;
        tx.seat_member(member, session, now)?;
        if let Some(key) = &agent.key {
            self.remember_key(key, member)?;
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
            unsettled,
            notices,
        })
    }

    /// For a session whose client tells its key with the first call, and has not called yet.
    fn unsettled(
        &self,
        before: Option<Member>,
        old_key: Option<(String, Option<String>)>,
    ) -> Result<Unsettled> {
        let notice = before.as_ref().map(|member| self.old_seat(member)).transpose()?;
        Ok(Unsettled {
            before,
            old_key,
            last_message: self.tx.last_message()?,
            notice: notice.unwrap_or_default(),
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
            1 => "its 1 unread message is yours now".to_owned(),
            n => format!("its {} unread messages are yours now", text::count(n)),
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
            // The process of a server on the network is nobody's in particular: no client's hook may
            // find its way by it.
            pid: if self.sitting.is_remote { 0 } else { std::process::id() },
            checkout: self.sitting.workspace.checkout.display().to_string(),
            branch: self.sitting.workspace.branch.clone(),
            began_at: self.now,
        }
    }
}
