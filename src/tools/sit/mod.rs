//! Sitting down: which member a session or a command is.

mod place;

use std::sync::Arc;

use self::place::{Place, Unsettled};
use super::{desk::Who, log};
use crate::{
    domain::{
        id::{MemberId, SessionId},
        name::{self, MemberName},
        time::Time,
    },
    error::{Error, Result},
    platform,
    seat::{Seat, Seats},
    store::{Joining, Member, Tx},
    workspace::Workspace,
};

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
    /// It sat down before its client told the key of the session: whose seat this was is still to
    /// be seen.
    unsettled: Option<Unsettled>,
    /// What the next result is to begin with.
    pub notices: Vec<String>,
}

impl Seated {
    /// The lock still counts: nobody replaced the folder.
    pub(super) fn is_current(&self, seats: &Seats) -> bool {
        self.seat.as_ref().is_none_or(|seat| seats.has(seat))
    }

    /// Nothing has happened that asks to sit down anew.
    pub(super) fn is_good(&self, epoch: i64, seats: &Seats) -> bool {
        self.epoch == epoch && !self.key_is_new && self.is_current(seats)
    }

    /// The first call is there, and with it the key: whose seat this was is to be settled.
    pub(super) fn has_to_settle(&self, who: &Who) -> bool {
        let Who::Session { agent, .. } = who else { return false };
        self.unsettled.is_some() && (agent.key.is_some() || !agent.tells_keys_with_calls())
    }

    /// The same session on another member's seat.
    pub(super) fn moved_to(self, seat: Seat, member: MemberId) -> Seated {
        Seated { name: seat.name().clone(), seat: Some(Arc::new(seat)), member, ..self }
    }
}

/// What sitting down needs to know.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are facts that do not depend on each other"
)]
pub(super) struct Sitting<'a> {
    pub who: &'a Who,
    pub seats: &'a Seats,
    pub workspace: &'a Workspace,
    /// The command changes nothing, so that it may look at a seat where somebody sits.
    pub only_looks: bool,
    /// The command makes a member of a name that nobody has.
    pub joins: bool,
    /// A tool is called; else the session only sits down.
    pub is_call: bool,
    /// Whoever asks is at work there.
    pub is_sign_of_life: bool,
    /// The name that this very session had before it left.
    pub had: Option<&'a MemberName>,
    /// It comes over the network.
    pub is_remote: bool,
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
                    Some(before) if before.epoch != epoch || !before.is_current(self.seats) => {
                        place.sit_again(before)
                    }
                    Some(before) => place.follow_key(before),
                    None => place.sit_down(),
                }
            }
            Who::Given { agent, name } => {
                if !tx.is_writable() {
                    return Err(Error::needs_write());
                }
                let wish = Some(name);
                let place = Place { sitting: self, tx, agent, wish, epoch, now };
                place.sit_on(name, before)
            }
            Who::Human => {
                let human = tx
                    .member_named(name::HUMAN)?
                    .ok_or_else(|| Error::internal("the table has no member `human`"))?;
                self.as_command(tx, &human, None, SessionId::NOBODY, epoch, now)
            }
            Who::Named(name) => self.sit_named(tx, name, epoch, now),
            Who::Shell { family, key } => self.sit_in_shell(tx, family, key, epoch, now),
            Who::Hook { key, above } => self.sit_as_hook(tx, key.as_deref(), above, epoch, now),
        }
    }

    /// `--as NAME`: its seat is taken for the length of the command.
    fn sit_named(&self, tx: &Tx<'_>, name: &MemberName, epoch: i64, now: Time) -> Result<Seated> {
        let member = tx.member_named(name.as_str())?;
        if member.is_none() && (self.only_looks || !self.joins) {
            return Err(nobody(tx, name)?);
        }
        if let Some(member) = member.as_ref().filter(|_| self.only_looks) {
            let session = self.session_of(member);
            return self.as_command(tx, member, None, session, epoch, now);
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
        // A client may give one id to two windows.
        let held = |member: &&Member| self.seats.is_held(&member.name);
        if tx.members_with_session_key(family, key)?.iter().filter(held).count() > 1 {
            return Err(Error::refused(
                "two sessions of one client have the same id, so that it cannot be told whose \
                 shell this is",
            )
            .hint("let the agent use its own team-table tools"));
        }
        let session = self.session_of(&member);
        self.as_command(tx, &member, None, session, epoch, now)
    }

    /// A hook that a client runs as a command: beside the server that the same client started.
    fn sit_as_hook(
        &self,
        tx: &Tx<'_>,
        key: Option<&str>,
        above: &[u32],
        epoch: i64,
        now: Time,
    ) -> Result<Seated> {
        let held = |member: &Member| self.seats.is_held(&member.name);
        let mut found = match key {
            Some(key) => tx.members_with_key(key)?,
            None => Vec::new(),
        };
        found.retain(held);
        if found.is_empty() {
            // An agent may have started another one: the nearest client is the hook's own.
            let distance = |pid: u32| {
                let parent = platform::parent_of(pid)?;
                above.iter().position(|it| *it == parent)
            };
            let mut served: Vec<(usize, Member)> = tx
                .served_members()?
                .into_iter()
                .filter(|(member, _)| held(member))
                .filter_map(|(member, pid)| Some((distance(pid)?, member)))
                .collect();
            let nearest = served.iter().map(|(distance, _)| *distance).min();
            served.retain(|(distance, _)| Some(*distance) == nearest);
            found = served.into_iter().map(|(_, member)| member).collect();
        }
        let [member] = found.as_slice() else {
            return Err(Error::not_found("no session here belongs to this hook"));
        };
        let session = self.session_of(member);
        self.as_command(tx, member, None, session, epoch, now)
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
        if tx.is_writable() && !looks_at_another && self.is_sign_of_life {
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
            unsettled: None,
            notices: Vec::new(),
        })
    }
}

/// A slip makes no member: it would be shown as active to everybody.
fn nobody(tx: &Tx<'_>, name: &MemberName) -> Result<Error> {
    let members = tx.members()?;
    let known = members.iter().filter(|member| member.left_at.is_none() && !member.is_program());
    let near = name::nearest(name.as_str(), known.map(|member| member.name.as_str()));
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    Ok(Error::not_found(format!("no member named `{name}`")).hint(format!(
        "{near}`team-table members` shows who there is; `team-table register --as {name}` makes a \
         new one"
    )))
}
