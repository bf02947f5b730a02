//! Notices: what `team-table` itself tells a member, in the transaction of the change.
//!
//! A notice is a message of kind `auto`, so that no program answers it. A member gets one at most
//! per change, and none about its own doing. An answer to it goes to whose doing it tells of.

use super::Cx;
use crate::{
    domain::{
        id::{MemberId, MessageId, TaskId},
        message::Kind,
        name,
    },
    error::{Error, Result},
    fault,
    store::{Member, NewMessage},
};

impl Cx<'_> {
    /// Tells a member something, unless it is its own doing or it was told of this change already.
    pub(super) fn notify(
        &mut self,
        member: &Member,
        task: Option<TaskId>,
        text: &str,
    ) -> Result<()> {
        if member.id == self.me.id {
            return Ok(());
        }
        let about = Some(self.me.id);
        self.tell(member, task, about, text)
    }

    /// Tells a member something that nobody did: it came by itself.
    pub(super) fn tell(
        &mut self,
        member: &Member,
        task: Option<TaskId>,
        about: Option<MemberId>,
        text: &str,
    ) -> Result<()> {
        if member.is_program() || self.effects.told.contains(&member.id) {
            return Ok(());
        }
        let sender = self
            .tx
            .member_named(name::TEAM_TABLE)?
            .ok_or_else(|| Error::internal("the table has no member `team-table`"))?;
        let new = NewMessage {
            sender: sender.id,
            kind: Kind::Auto,
            audience: member.name.as_str(),
            is_broadcast: false,
            recipient: Some(member.id),
            reply_to: None,
            task,
            about,
            body: text,
        };
        self.post(&sender, member, &new)?;
        self.effects.told.push(member.id);
        Ok(())
    }

    /// Stores a message to one member that a program wrote.
    pub(super) fn post(
        &mut self,
        sender: &Member,
        member: &Member,
        new: &NewMessage<'_>,
    ) -> Result<MessageId> {
        let id = self.tx.insert_message(new, self.now)?;
        fault::point("after_insert");
        self.tx.deliver(id, sender.id, member.id)?;
        self.ring(&member.name);
        Ok(id)
    }
}
