//! What a member's poll daemon does at the table, one message at a time.
//!
//! It writes in the member's name and takes no seat, so all that it sends is of kind `auto`. It goes
//! by the last message that it dealt with, which is written down together with the answer: what is
//! answered is never answered again, and what is not, is.

use super::{Cx, recipients::Found, send_message::now_called};
use crate::{
    domain::{
        id::MessageId,
        message::Kind,
        name::MemberName,
        poll::{Action, Incoming, Reason, action},
    },
    error::Result,
    store::{Member, NewMessage, Polled, Shown},
};

/// So many messages of others are looked through again at each look; then that is noted.
const NOTE_EVERY: i64 = 1_000;

/// A member that can be watched.
#[derive(Debug)]
pub struct Watched {
    pub name: MemberName,
    /// `active`, `away, last seen 3 h ago`.
    pub state: String,
    /// Messages that no daemon has looked at yet wait, unread; counts stop at 100.
    pub n_unread: usize,
}

/// What a look at the inbox came to.
#[derive(Debug)]
pub enum Look {
    /// There is no member of that name.
    Nobody,
    /// The member has another name now.
    Renamed(MemberName),
    NothingNew,
    Dealt(Box<Dealt>),
}

/// A message that was dealt with.
#[derive(Debug)]
pub struct Dealt {
    pub message: Shown,
    pub action: Action,
    /// What was sent to its sender, under the name that it has now.
    pub reply: Option<(MessageId, MemberName)>,
}

impl Cx<'_> {
    /// The member of this name, to be watched from now on.
    ///
    /// # Errors
    /// Nobody of that name, with who there is; one who left or has another name.
    pub fn watched(&self, wanted: &str) -> Result<Watched> {
        let found = match self.tx.member_named(wanted)? {
            Some(member) if member.is_human() => self.found(member),
            Some(member) => self.reachable(member)?,
            None => return Err(self.unknown(wanted)?),
        };
        Ok(Watched {
            n_unread: self.n_unread(&found)?,
            state: found.state.to_string(),
            name: found.member.name,
        })
    }

    /// Deals with the next message in the inbox of `name`, after `n_replies` of at most
    /// `max_replies`.
    ///
    /// # Errors
    /// The table cannot be used; [`crate::error::Kind::NeedsWrite`] where there is something to do
    /// and this is no turn to write.
    pub fn poll(&mut self, name: &MemberName, n_replies: u32, max_replies: u32) -> Result<Look> {
        let member = self.tx.member_named(name.as_str())?;
        let Some(member) = member else { return Ok(Look::Nobody) };
        if let Some(moved_to) = member.moved_to {
            return Ok(Look::Renamed(self.tx.member(moved_to)?.name));
        }
        let found = self.found(member);
        let me = found.member.id;
        let after = match self.tx.polled_to(me)? {
            Some(last) => last,
            None => self.begin(&found)?,
        };
        let Some(polled) = self.tx.next_polled(me, after)? else {
            let last = self.tx.last_message()?;
            if last.0 - after.0 >= NOTE_EVERY {
                self.tx.set_polled_to(me, last)?;
            }
            return Ok(Look::NothingNew);
        };
        // Noted first: a look without the turn to write ends here.
        self.tx.set_polled_to(me, polled.message.id)?;
        let sender = self.found(now_called(self, polled.message.sender_id)?);
        let sender_left = sender.state.has_left() || sender.member.id == me;
        let message = &polled.message;
        let action = action(
            Incoming {
                kind: message.kind,
                is_broadcast: message.is_broadcast,
                sender_left,
                body: &message.body,
            },
            n_replies,
            max_replies,
        );
        let text = match action {
            Action::PassOver(_) => None,
            Action::Acknowledge => {
                Some(format!("[AUTO] {} Nobody needs to answer this.", standing(&found, &polled)))
            }
            Action::Escalate(reason) => Some(escalation(&found, &polled, reason, n_replies)),
        };
        let text = text.filter(|_| !sender_left);
        let reply = text
            .map(|text| self.reply_automatically(&found.member, &sender.member, message.id, &text))
            .transpose()?
            .map(|id| (id, sender.member.name));
        Ok(Look::Dealt(Box::new(Dealt { message: polled.message, action, reply })))
    }

    /// The first daemon that a member ever has begins with what waits unread.
    fn begin(&self, found: &Found) -> Result<MessageId> {
        let oldest = self.tx.unread_messages(found.member.id, found.session, 1)?;
        let before = match oldest.first() {
            Some(message) => MessageId(message.id.0 - 1),
            None => self.tx.last_message()?,
        };
        self.tx.set_polled_to(found.member.id, before)?;
        Ok(before)
    }

    fn reply_automatically(
        &mut self,
        sender: &Member,
        to: &Member,
        reply_to: MessageId,
        body: &str,
    ) -> Result<MessageId> {
        let new = NewMessage {
            sender: sender.id,
            kind: Kind::Auto,
            audience: to.name.as_str(),
            is_broadcast: false,
            recipient: Some(to.id),
            reply_to: Some(reply_to),
            task: None,
            about: None,
            body,
        };
        self.post(sender, to, &new)
    }
}

/// The truth about a message in the inbox, as a sentence.
fn standing(found: &Found, polled: &Polled) -> String {
    let Found { member, state, session } = found;
    let name = &member.name;
    if polled.is_read {
        return format!("{name} ({state}) has read this.");
    }
    if polled.handed_to == Some(*session) {
        return format!("{name} ({state}) has been handed this.");
    }
    format!("{name} ({state}) has not read this yet; it waits in its inbox.")
}

fn escalation(found: &Found, polled: &Polled, reason: Reason, n_replies: u32) -> String {
    let name = &found.member.name;
    let why = match reason {
        Reason::Question => "This holds a question, which no program answers".to_owned(),
        Reason::Decision => "This asks for a decision, which no program takes".to_owned(),
        Reason::Limit => format!("There were {n_replies} automatic replies, and no more come"),
    };
    format!(
        "[AUTO] {why}: the person who runs `team-table poll {name}` is asked to look at it. {} \
         Nobody needs to answer this.",
        standing(found, polled)
    )
}
