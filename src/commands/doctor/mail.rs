//! Whose mail waits, for how long, and whether it waits for somebody who is elsewhere.

use serde::Serialize;

use super::{Place, Report, members::Row};
use crate::{
    domain::{
        id::{MemberId, MessageId, SessionId},
        limits,
        time::{Age, DAY, MINUTE, Time},
    },
    error::Result,
    store::Tx,
    view::text,
};

pub(super) const AREA: &str = "unread";

/// Mail may wait for so long for somebody who sits there.
pub(super) const PATIENCE: i64 = 15 * MINUTE;
/// Mail that waits for longer for somebody who has left is history.
const HISTORY: i64 = 7 * DAY;

/// The unread mail of a member.
#[derive(Debug, Serialize)]
pub(super) struct Inbox {
    member: String,
    /// Counts stop at 100.
    unread: usize,
    oldest: MessageId,
    oldest_at: Time,
    /// Handed to a session that ended before it was known to have read it.
    again: usize,
    /// Those that were meant for this member alone.
    direct: Vec<MessageId>,
    #[serde(skip)]
    last_direct_at: Option<Time>,
    #[serde(skip)]
    id: MemberId,
}

pub(super) fn look(tx: &Tx<'_>, rows: &[Row]) -> Result<Vec<Inbox>> {
    let stop = i64::try_from(limits::COUNT_STOPS_AT).unwrap_or(i64::MAX);
    let mut inboxes = Vec::new();
    for row in rows {
        let session = row.session.as_ref().filter(|_| row.seated).map(|session| session.id);
        let messages = tx.unread_messages(row.id, session.unwrap_or(SessionId::NOBODY), stop)?;
        let Some(oldest) = messages.first() else { continue };
        let direct = || messages.iter().filter(|message| !message.is_broadcast);
        inboxes.push(Inbox {
            member: row.name.to_string(),
            unread: messages.len(),
            oldest: oldest.id,
            oldest_at: oldest.sent_at,
            again: messages.iter().filter(|message| message.again).count(),
            direct: direct().map(|message| message.id).collect(),
            last_direct_at: direct().map(|message| message.sent_at).max(),
            id: row.id,
        });
    }
    Ok(inboxes)
}

pub(super) fn judge(place: &Place<'_>, rows: &[Row], inboxes: &[Inbox], report: &mut Report) {
    for inbox in inboxes {
        let Some(row) = rows.iter().find(|row| row.id == inbox.id) else { continue };
        if row.is_human {
            report.note(AREA, "what waits for you is shown by `team-table inbox`");
        } else if row.seated {
            inbox.judge_seated(place.now, report);
        } else if row.shown.has_left() {
            inbox.judge_left(place.now, report);
        } else if row.is_away() {
            inbox.judge_away(row, rows, report);
        }
    }
}

impl Inbox {
    fn judge_seated(&self, now: Time, report: &mut Report) {
        let age = now.since(self.oldest_at);
        if age.0 > PATIENCE {
            let name = &self.member;
            report.wrong(
                AREA,
                format!("{name} sits there and has not asked for its mail for {age}"),
                format!("tell {name}: call get_messages"),
            );
        }
    }

    /// The classic: the one who is meant has come back under another name.
    fn judge_away(&self, row: &Row, rows: &[Row], report: &mut Report) {
        let name = &self.member;
        let Some(sibling) = row.sibling(rows).filter(|_| !self.direct.is_empty()) else {
            report.note(AREA, format!("mail waits until {name} is back"));
            return;
        };
        let (waits, sibling) = (self.direct_waits(), &sibling.name);
        report.wrong(
            AREA,
            format!("{waits} for {name}, who is away, while {sibling} sits there"),
            register(sibling.as_str(), name),
        );
    }

    fn judge_left(&self, now: Time, report: &mut Report) {
        let name = &self.member;
        let Some(last) = self
            .direct
            .last()
            .filter(|_| self.last_direct_at.is_some_and(|at| now.since(at) < Age(HISTORY)))
        else {
            return;
        };
        report.wrong(
            AREA,
            format!("{} for {name}, who has left and will not read it", self.direct_waits()),
            format!("run `team-table show {}` and send it to somebody who is here", last.0),
        );
    }

    fn direct_waits(&self) -> String {
        let n = self.direct.len();
        format!("{} {}", text::messages(n), if n == 1 { "waits" } else { "wait" })
    }

    fn line(&self, now: Time) -> String {
        let again = match self.again {
            0 => String::new(),
            n => format!("; {} of them handed to a session that ended", text::count(n)),
        };
        format!(
            "{}: {}, the oldest {} from {}{again}",
            self.member,
            text::messages(self.unread),
            self.oldest,
            now.since(self.oldest_at).ago()
        )
    }
}

/// How an agent takes a seat over that is free, with its mail.
pub(super) fn register(sibling: &str, name: &str) -> String {
    format!("tell {sibling}: call register with the name {name}")
}

pub(super) fn lines(inboxes: &[Inbox], now: Time) -> Vec<String> {
    if inboxes.is_empty() {
        return vec!["no mail waits for anybody".to_owned()];
    }
    inboxes.iter().map(|inbox| inbox.line(now)).collect()
}
