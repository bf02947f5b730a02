//! Whom a message reaches, and the truth about it: looked up when it is sent.

use crate::{
    domain::{
        id::SessionId,
        limits,
        member::State,
        message,
        name::{self, MemberName},
        time::{Age, DAY},
    },
    error::{Error, Result},
    store::Member,
    tools::Cx,
    view::{sanitize, text},
};

/// A member as it was found at one moment: its seat is looked at once.
#[derive(Debug)]
pub(super) struct Found {
    pub member: Member,
    pub state: State,
    /// The session that sits there now.
    pub session: SessionId,
}

impl Cx<'_> {
    pub(super) fn is_held(&self, member: &Member) -> bool {
        !member.seatless && self.seats.is_held(&member.name)
    }

    pub(super) fn found(&self, member: Member) -> Found {
        let held = self.is_held(&member);
        let state = member.presence(held).state(self.now);
        let session = member.session.filter(|_| held).unwrap_or(SessionId::NOBODY);
        Found { member, state, session }
    }

    /// How many unread messages wait for a member, seen from outside.
    pub(super) fn n_unread(&self, found: &Found) -> Result<usize> {
        self.tx.count_unread(found.member.id, found.session)
    }

    /// The member of this name that can be written to.
    ///
    /// # Errors
    /// Nobody of that name, with who there is; one who left or moved, with when and where; oneself.
    pub(super) fn recipient(&self, wanted: &str) -> Result<Found> {
        match self.tx.member_named(wanted)? {
            Some(member) => self.reachable(member),
            None => Err(self.unknown(wanted)?),
        }
    }

    /// A member that was found, if it can be written to; see [`Cx::recipient`].
    pub(super) fn reachable(&self, member: Member) -> Result<Found> {
        if member.is_program() {
            return Err(self.unknown(member.name.as_str())?);
        }
        if member.id == self.me.id {
            return Err(Error::refused(format!("`{}` is you", member.name))
                .hint("list_members shows whom you can write to"));
        }
        if let Some(moved_to) = member.moved_to {
            let now_called = self.tx.member(moved_to)?.name;
            return Err(Error::refused(format!("`{}` is now `{now_called}`", member.name))
                .hint(format!("write to `{now_called}`")));
        }
        let found = self.found(member);
        if let State::Left(age) = found.state {
            let when = age.map_or_else(String::new, |age| format!(" {}", age.ago()));
            let left = format!("`{}` left{when}", found.member.name);
            return Err(Error::refused(left).hint(known(&self.present()?)));
        }
        Ok(found)
    }

    /// As [`Cx::recipient`], for what may be a role too: agents write to `coordinator` where that is
    /// what somebody does, and nobody's name.
    pub(super) fn addressee(&self, wanted: &str) -> Result<Found> {
        if let Some(member) = self.tx.member_named(wanted)? {
            return self.reachable(member);
        }
        let members = self.present()?;
        let near = near_name(wanted, &members).or_else(|| near_role(wanted, &members));
        Err(unknown(wanted, near, &members))
    }

    pub(super) fn unknown(&self, wanted: &str) -> Result<Error> {
        let members = self.present()?;
        Ok(unknown(wanted, near_name(wanted, &members), &members))
    }

    /// Everybody who has not left, but me.
    fn present(&self) -> Result<Vec<Found>> {
        let members = self.tx.members()?.into_iter().filter(|member| member.id != self.me.id);
        Ok(members
            .map(|member| self.found(member))
            .filter(|found| !found.state.has_left())
            .collect())
    }

    /// Everyone with a role who has not left, but me.
    pub(super) fn with_role(&self, role: &str) -> Result<Vec<Found>> {
        let mut members = self.present()?;
        let mut roles: Vec<String> = members
            .iter()
            .filter(|found| !found.member.role.is_empty())
            .map(|found| format!("@{}", found.member.role.to_ascii_lowercase()))
            .collect();
        roles.sort();
        roles.dedup();
        members.retain(|found| found.member.role.eq_ignore_ascii_case(role));
        if members.is_empty() {
            let other = |member: &Member| !member.is_program() && member.id != self.me.id;
            let member = self.tx.member_named(role)?.filter(other);
            let known = match (member, roles.as_slice()) {
                (Some(member), _) if member.is_human() => {
                    "the human is no role: write to `human`".to_owned()
                }
                (Some(member), _) => {
                    format!("`{0}` is a member and no role: write to `{0}`", member.name)
                }
                (None, []) => "nobody else has a role; register sets one".to_owned(),
                (None, roles) => format!("known roles: {}", text::list(roles, 20)),
            };
            let mine = self.tx.member(self.me.id)?.role.eq_ignore_ascii_case(role);
            let nobody = if mine { "nobody but you" } else { "nobody here" };
            return Err(Error::not_found(format!(
                "{nobody} has the role {}",
                sanitize::quote(role)
            ))
            .hint(known));
        }
        Ok(members)
    }

    /// The human, and every member heard of in the last 24 hours who has not left; but me.
    pub(super) fn everyone(&self) -> Result<Vec<Found>> {
        let mut members = self.present()?;
        let now = self.now;
        members.retain(|Found { member, .. }| {
            member.is_human() || member.heartbeat_at.is_some_and(|at| now.since(at) < Age(DAY))
        });
        Ok(members)
    }

    /// Checks a text to be sent: its size as it is and as it will be shown.
    pub(super) fn check_body(body: &str) -> Result<()> {
        message::check_body(body)?;
        Cx::check_shown("the message", body)
    }

    /// Checks a long text that is no message: `the comment`.
    pub(super) fn check_text(what: &str, text: &str) -> Result<()> {
        message::check_size(what, text)?;
        Cx::check_shown(what, text)
    }

    fn check_shown(what: &str, text: &str) -> Result<()> {
        if let Some(shown) = sanitize::fenced_over(text, limits::BODY_SHOWN_BYTES) {
            return Err(Error::invalid(format!(
                "{what} has {shown} bytes as it is shown, with every line behind `| ` and \
                 control characters escaped; at most {} are allowed",
                limits::BODY_SHOWN_BYTES
            ))
            .hint("write it to a file in the project and send the path, or send it in parts"));
        }
        Ok(())
    }

    /// Counts one message against the flood guard; the human is exempt.
    pub(super) fn count_message(&self) -> Result<()> {
        if self.me.is_human || self.max_per_minute == 0 {
            return Ok(());
        }
        let window = self.tx.member(self.me.id)?.window;
        let window = window.add(self.now, self.max_per_minute).map_err(|left| {
            Error::refused(format!(
                "you have sent {} messages within a minute",
                self.max_per_minute
            ))
            .hint(format!(
                "nothing was sent; go on in {}, with fewer and longer messages",
                text::seconds_left(left)
            ))
        })?;
        self.tx.set_window(self.me.id, window)
    }

    /// Rings the bell of a member after the commit.
    pub(super) fn ring(&mut self, member: &MemberName) {
        self.effects.ring.push(member.clone());
    }
}

fn unknown(wanted: &str, near: Option<String>, members: &[Found]) -> Error {
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    Error::not_found(format!("no member named {}", sanitize::quote(wanted)))
        .hint(format!("{near}{}", known(members)))
}

fn near_name(wanted: &str, members: &[Found]) -> Option<String> {
    let names = members.iter().map(|found| found.member.name.as_str());
    name::nearest(wanted, names).map(str::to_owned)
}

fn near_role(wanted: &str, members: &[Found]) -> Option<String> {
    let roles = members.iter().map(|found| found.member.role.as_str());
    let near = name::nearest(wanted, roles.filter(|role| !role.is_empty()))?;
    Some(format!("@{near}"))
}

/// `known sessions: claude-1 (active), human (away)`.
fn known(members: &[Found]) -> String {
    let known: Vec<String> =
        members.iter().map(|found| format!("{} ({})", found.member.name, found.state)).collect();
    if known.is_empty() {
        return "nobody else is here yet; an agent is listed after its first call".to_owned();
    }
    format!("known sessions: {}", text::list(&known, 20))
}
