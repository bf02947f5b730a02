//! What a desk does beside calls: it sits down, writes down what was read, serves who waits, and
//! the commands that look at the table as a whole, make it, or empty it.

use std::path::{Path, PathBuf};

use super::{
    super::{Cx, Effects, Me, lapse, log},
    Asked, Desk, Who, opened,
};
use crate::{
    domain::{
        id::{MemberId, SessionId},
        name::{self, MemberName},
        time::Time,
    },
    error::{Error, Kind, Result},
    seat::{Seat, Seats, WriteTurn},
    store::{Contents, Event, Handing, Member, Pulse, Tx},
    view::text::{self, Front},
    workspace::Workspace,
};

impl Desk {
    /// The bell of the member that sits here, made where it is missing; `None` before a first call.
    pub fn bell(&self) -> Result<Option<PathBuf>> {
        self.seated.as_ref().map(|seated| self.seats.bell(&seated.name)).transpose()
    }

    /// What changes when somebody has written, or `None` where the table is not the one that was
    /// open, so that the next call finds it anew.
    pub fn pulse(&self) -> Option<Pulse> {
        let shared = opened(&self.store);
        let store = shared.as_ref().filter(|store| store.is_current())?;
        let sits = self.seated.as_ref().is_none_or(|it| it.is_current(&self.seats));
        sits.then(|| store.pulse().ok()).flatten()
    }

    /// Looks anew who sits there, with the next call: for a process that waits beside a session.
    pub fn look_again(&mut self) {
        self.seated = None;
    }

    /// The member that sits here, or beside whose session this process works.
    pub fn sits_at(&self) -> Option<MemberName> {
        self.seated.as_ref().map(|seated| seated.name.clone())
    }

    /// The one place to wait beside a member's session; `None` where another process has it.
    pub fn wait_beside(&self, name: &MemberName) -> Result<Option<Seat>> {
        self.seats.place_beside(name, "wake")
    }

    /// The client's id of the session that this process serves, if it is one of this family.
    pub fn session_of(&self, family: &str) -> Option<&str> {
        match &self.who {
            Who::Session { agent, .. } if agent.family == family => agent.key.as_deref(),
            _ => None,
        }
    }

    /// Notes that a hook failed, and why: a hook tells nobody itself.
    pub fn note_hook_failure(&self, what: &str, err: &Error) {
        let at = self.now().utc();
        self.workspace.note_hook_failure(&at, what, &err.explain());
    }

    /// Whether there is a table to sit down at without making one, and reason to.
    pub fn can_sit_down(&self) -> bool {
        self.seated.is_none() && !self.has_left && self.table_exists()
    }

    /// Whether there is a table to look at.
    pub fn table_exists(&self) -> bool {
        self.workspace.table.exists()
    }

    /// Sits down without a call, where a table is there.
    pub fn sit_down(&mut self, turn: &WriteTurn) -> Result<()> {
        if !self.can_sit_down() {
            return Ok(());
        }
        let now = self.now();
        self.open(Some(turn), now)?;
        let outcome = self.transact(Asked::Nothing, true, now)?;
        self.take_over(outcome, now);
        Ok(())
    }

    /// Writes down what was read and what never arrived, without a call.
    pub fn settle(&mut self, _turn: &WriteTurn) -> Result<()> {
        if !self.has_to_settle() {
            return Ok(());
        }
        let now = self.now();
        let mut shared = opened(&self.store);
        let Some(store) = shared.as_mut().filter(|store| store.is_current()) else {
            return Ok(());
        };
        let (confirm, give_back) = (&self.to_confirm, &self.to_give_back);
        let actor = self.had.as_ref().map_or(name::HUMAN, MemberName::as_str);
        store.write(|tx| settle(tx, actor, confirm, give_back, now))?;
        self.to_confirm.clear();
        self.to_give_back.clear();
        Ok(())
    }

    /// Makes the table, if it is not there yet.
    ///
    /// # Errors
    /// It cannot be made, or is not one of ours.
    pub fn make_table(&mut self, turn: &WriteTurn) -> Result<()> {
        let now = self.now();
        self.open(Some(turn), now)
    }

    /// Changes what belongs to no member, in a table that is made where it is missing.
    ///
    /// # Errors
    /// The table cannot be used, or `f` fails.
    pub fn write<T>(
        &mut self,
        turn: &WriteTurn,
        f: impl FnOnce(&Tx<'_>, Time) -> Result<T>,
    ) -> Result<T> {
        let now = self.now();
        self.open(Some(turn), now)?;
        let mut shared = opened(&self.store);
        let Some(store) = shared.as_mut() else { return Err(Error::needs_write()) };
        store.write(|tx| f(tx, now))
    }

    /// Reads the table, for what belongs to no member. `None` where there is no table yet.
    ///
    /// # Errors
    /// What is wrong with the table, or with the reading.
    pub fn read<T>(&mut self, f: impl FnOnce(&Tx<'_>, Time) -> Result<T>) -> Result<Option<T>> {
        let now = self.now();
        if !self.open_to_read(now)? {
            return Ok(None);
        }
        let mut shared = opened(&self.store);
        let Some(store) = shared.as_mut() else { return Ok(None) };
        store.read(|tx| f(tx, now)).map(Some)
    }

    /// Looks at the table as the human would, without a sign of life and without marking anything.
    /// `None` where there is no table yet.
    ///
    /// # Errors
    /// What is wrong with the table, or with the look.
    pub fn look<T>(&mut self, f: impl FnOnce(&mut Cx<'_>) -> Result<T>) -> Result<Option<T>> {
        let now = self.now();
        if !self.open_to_read(now)? {
            return Ok(None);
        }
        let mut shared = opened(&self.store);
        let Some(store) = shared.as_mut() else { return Ok(None) };
        let around = (&self.seats, &self.workspace, self.front);
        store.read(|tx| f(&mut as_human(tx, around, now)?)).map(Some)
    }

    /// Opens the table; `false` where there is none yet.
    fn open_to_read(&mut self, now: Time) -> Result<bool> {
        match self.open(None, now) {
            Err(err) if err.kind() == Kind::NeedsWrite => {
                if !self.table_exists() {
                    return Ok(false);
                }
                // A copy that was put back, or an older version: it is made ready first.
                let turn = self.try_turn()?;
                let busy = || Error::busy("somebody is writing to the table");
                self.open(Some(&turn.ok_or_else(busy)?), now)?;
            }
            opened => opened?,
        }
        Ok(true)
    }

    /// Changes the table as [`Desk::look`] looks at it: `f` says in whose name. `None` where there
    /// is no table.
    ///
    /// # Errors
    /// What is wrong with the table, or with the change.
    pub fn act<T>(
        &mut self,
        turn: &WriteTurn,
        f: impl FnOnce(&mut Cx<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let now = self.now();
        if !self.table_exists() {
            return Ok(None);
        }
        self.open(Some(turn), now)?;
        let mut shared = opened(&self.store);
        let Some(store) = shared.as_mut() else { return Ok(None) };
        let around = (&self.seats, &self.workspace, self.front);
        let looked = self.looked;
        let done = store.write(|tx| {
            let mut cx = as_human(tx, around, now)?;
            let looked = lapse::some(&mut cx, looked)?;
            let value = f(&mut cx)?;
            Ok((value, cx.effects.ring, looked))
        });
        if done.as_ref().is_err_and(|err| err.kind() == Kind::Storage) {
            // Another try is to find what is there then.
            *shared = None;
        }
        let (value, ring, looked) = done?;
        self.looked = looked;
        for name in &ring {
            self.seats.ring(name);
        }
        Ok(Some(value))
    }

    /// The place of the one poll daemon that a member may have; `None` where one runs.
    ///
    /// # Errors
    /// The lock file cannot be made or locked at all.
    pub fn claim_poll(&self, name: &MemberName) -> Result<Option<Seat>> {
        self.seats.place_beside(name, "poll")
    }

    /// The bell of a member, made where it is missing.
    pub fn bell_of(&self, name: &MemberName) -> Result<PathBuf> {
        self.seats.bell(name)
    }

    /// Empties the table, with a copy of it first if asked for, and says what was deleted, and how
    /// many sessions sit there. They go on where `is_forced`, and are told by their next result;
    /// their bells are rung.
    ///
    /// # Errors
    /// Sessions sit there, and it is not forced: nothing was changed. The table or the copy cannot be
    /// written.
    pub fn reset(
        &mut self,
        turn: &WriteTurn,
        is_forced: bool,
        backup: Option<&Path>,
    ) -> Result<(Contents, usize)> {
        let now = self.now();
        self.open(Some(turn), now)?;
        let mut shared = opened(&self.store);
        let Some(store) = shared.as_mut() else { return Err(Error::needs_write()) };
        let is_seated = |member: &Member| !member.seatless && self.seats.is_held(&member.name);
        if !is_forced {
            // Nobody else writes, and so sits down, before this turn ends.
            let names: Vec<String> = store.read(|tx| {
                let seated = tx.members()?.into_iter().filter(is_seated);
                Ok(seated.map(|member| member.name.to_string()).collect())
            })?;
            if !names.is_empty() {
                return Err(Desk::in_use(&names));
            }
        }
        if let Some(path) = backup {
            store.copy_to(path)?;
        }
        let wiped = store.write(|tx| {
            let members = tx.members()?;
            let seated: Vec<MemberId> =
                members.iter().filter(|member| is_seated(member)).map(|member| member.id).collect();
            let names: Vec<MemberName> = members.into_iter().map(|member| member.name).collect();
            let mut gone = tx.contents(now)?;
            gone.members -= i64::try_from(seated.len()).unwrap_or(0);
            tx.wipe(&seated, now)?;
            let event = Event { actor: name::HUMAN, kind: "table.reset", task: None, detail: None };
            tx.log(now, &event)?;
            Ok((names, gone, seated.len()))
        });
        if wiped.is_err()
            && let Some(path) = backup
            && let Err(err) = std::fs::remove_file(path)
        {
            // The next try makes its own copy, of what is there then.
            tracing::warn!("cannot remove {}: {err}", path.display());
        }
        let (names, gone, n_seated) = wiped?;
        for name in &names {
            self.seats.ring(name);
        }
        if let Err(err) = store.shrink() {
            tracing::debug!("the file could not be shrunk: {err}");
        }
        Ok((gone, n_seated))
    }

    /// Why a table is not reset.
    pub fn in_use(sessions: &[String]) -> Error {
        Error::refused(format!("sessions are connected: {}", text::list(sessions, 20)))
            .hint("end them first, or add --force: they then go on with an empty table")
    }
}

/// What a command is given that nobody in particular asks for.
fn as_human<'a>(
    tx: &'a Tx<'a>,
    (seats, workspace, front): (&'a Seats, &'a Workspace, Front),
    now: Time,
) -> Result<Cx<'a>> {
    let human = tx
        .member_named(name::HUMAN)?
        .ok_or_else(|| Error::internal("the table has no member `human`"))?;
    let me = Me {
        id: human.id,
        name: human.name,
        is_human: true,
        reads_as: SessionId::NOBODY,
        hands_as: SessionId::COMMAND_LINE,
        is_session: false,
        is_given: false,
        epoch: tx.epoch()?,
    };
    let effects = Effects::default();
    Ok(Cx { tx, now, me, seats, workspace, front, max_per_minute: 0, effects })
}

/// Writes down what was read, and what never arrived.
pub(super) fn settle(
    tx: &Tx<'_>,
    actor: &str,
    confirm: &[Handing],
    give_back: &[Handing],
    now: Time,
) -> Result<()> {
    if confirm.is_empty() && give_back.is_empty() {
        return Ok(());
    }
    let epoch = tx.epoch()?;
    for handing in confirm.iter().filter(|handing| handing.epoch == epoch) {
        let read = tx.confirm(handing, now)?;
        log::messages(tx, actor, "message.read", &read, now)?;
    }
    for handing in give_back.iter().filter(|handing| handing.epoch == epoch) {
        let back = tx.give_back(handing, now)?;
        log::messages(tx, actor, "message.unhanded", &back, now)?;
    }
    Ok(())
}
