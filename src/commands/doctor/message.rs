//! `doctor 41`: where one message is, and why who was meant has not read it.

use std::path::Path;

use serde::Serialize;

use super::{
    Place, Report, mail,
    members::{self, Row},
};
use crate::{
    domain::{
        id::{MessageId, SessionId},
        time::{MINUTE, Time},
    },
    error::Result,
    platform,
    store::{Checkup, Standing, Tx},
    view::{sanitize, text::Header},
    workspace::seats_of,
};

pub(super) const AREA: &str = "message";

#[derive(Debug, Serialize)]
pub(super) struct Facts {
    id: MessageId,
    from: String,
    to: String,
    sent_at: Time,
    /// Its first line.
    body: String,
    recipients: Vec<Part>,
    #[serde(skip)]
    header: String,
    #[serde(skip)]
    is_broadcast: bool,
}

/// One recipient's part in it.
#[derive(Debug, Serialize)]
struct Part {
    name: String,
    /// `queued`, `handed`, `read`, or `unread again` where the session ended that had it.
    state: &'static str,
    handed_at: Option<Time>,
    handed_session: Option<SessionId>,
    /// The client of that session.
    handed_to: Option<String>,
    read_at: Option<Time>,
    /// A hook announced it to the session that sits there.
    announced: bool,
    #[serde(skip)]
    row: Option<usize>,
}

/// `None` where there is no such message.
pub(super) fn look(
    place: &Place<'_>,
    tx: &Tx<'_>,
    rows: &[Row],
    id: MessageId,
) -> Result<Option<Facts>> {
    let Some(message) = tx.message(id)? else { return Ok(None) };
    let header = Header {
        id,
        sender: &message.sender,
        to: &message.audience,
        kind: message.kind,
        reply_to: message.reply_to,
        sent_at: message.sent_at,
        late: false,
        again: false,
    };
    let mut recipients = Vec::new();
    for standing in tx.standings(id)? {
        recipients.push(part(tx, rows, id, standing)?);
    }
    Ok(Some(Facts {
        id,
        header: header.line(place.now),
        from: message.sender.clone(),
        to: message.audience.clone(),
        sent_at: message.sent_at,
        is_broadcast: message.is_broadcast,
        body: message.body.lines().next().unwrap_or_default().to_owned(),
        recipients,
    }))
}

fn part(tx: &Tx<'_>, rows: &[Row], id: MessageId, standing: Standing) -> Result<Part> {
    let found = rows.iter().position(|row| row.name.as_str() == standing.member);
    let sits_with = found
        .and_then(|n| rows.get(n))
        .filter(|row| row.seated)
        .and_then(|row| row.session.as_ref());
    let handed_to = match standing.handed_session {
        Some(SessionId::COMMAND_LINE) => Some("the command line".to_owned()),
        Some(session) => {
            let session = members::session(tx, session, false)?;
            session.map(|session| session.brief())
        }
        None => None,
    };
    let is_there = standing.handed_session.is_some()
        && sits_with.map(|session| session.id) == standing.handed_session;
    Ok(Part {
        state: match (standing.read_at, standing.handed_at) {
            (Some(_), _) => "read",
            (None, Some(_)) if is_there => "handed",
            (None, Some(_)) => "unread again",
            (None, None) => "queued",
        },
        announced: sits_with.is_some_and(|session| session.announced_to >= id),
        name: standing.member,
        handed_at: standing.handed_at,
        handed_session: standing.handed_session,
        handed_to,
        read_at: standing.read_at,
        row: found,
    })
}

impl Facts {
    pub(super) fn judge(&self, place: &Place<'_>, rows: &[Row], report: &mut Report) {
        if self.recipients.is_empty() {
            report.note(AREA, "nobody has it any more, or nobody was there to get it");
        }
        for part in &self.recipients {
            let Some(row) = part.row.and_then(|n| rows.get(n)) else { continue };
            match part.state {
                "read" => {}
                "handed" => report.note(
                    AREA,
                    format!("{} was given it; it counts as read with its next call", part.name),
                ),
                _ => self.judge_unread(part, row, (place, rows), report),
            }
        }
    }

    fn judge_unread(
        &self,
        part: &Part,
        row: &Row,
        (place, rows): (&Place<'_>, &[Row]),
        report: &mut Report,
    ) {
        let (id, name) = (self.id, &part.name);
        if row.is_human {
            report.note(AREA, "it waits for you: run `team-table inbox`");
        } else if row.seated {
            self.judge_seated(part, row, place, report);
        } else if self.is_broadcast {
            report.note(AREA, format!("{name} is {}", row.shown));
        } else if row.shown.has_left() {
            report.wrong(
                AREA,
                format!("{name} has left and will not read it"),
                "send it to somebody who is here: `team-table members`",
            );
        } else if let Some(sibling) = row.sibling(rows) {
            let sibling = &sibling.name;
            report.wrong(
                AREA,
                format!("it waits for {name}, who is away, while {sibling} sits there"),
                mail::register(sibling.as_str(), name),
            );
        } else {
            let with = row.session.as_ref().map_or_else(String::new, |session| {
                format!(" in {}", sanitize::field(&session.checkout))
            });
            report.wrong(
                AREA,
                format!("{name} is {}; nobody sits there to read {id}", row.shown),
                format!("start {name} again{with}: its first call brings its mail"),
            );
        }
    }

    fn judge_seated(&self, part: &Part, row: &Row, place: &Place<'_>, report: &mut Report) {
        let name = &part.name;
        let age = place.now.since(self.sent_at);
        if age.0 < MINUTE {
            report.note(AREA, format!("{name} sits there; it was sent just now"));
            return;
        }
        let hooks = row.session.as_ref().map(|session| session.hooks(place.now));
        let heard = match (part.announced, hooks) {
            (true, _) => "a hook announced it".to_owned(),
            (false, Some(hooks)) => format!("no hook announced it ({hooks})"),
            (false, None) => "no hook announced it".to_owned(),
        };
        report.wrong(
            AREA,
            format!("{name} sits there ({}) and has not asked for it; {heard}", row.shown),
            format!("tell {name}: call get_messages"),
        );
    }

    pub(super) fn lines(&self, now: Time) -> Vec<String> {
        let mut lines = vec![self.header.clone(), sanitize::quote(&self.body)];
        lines.extend(self.recipients.iter().map(|part| part.line(now)));
        lines
    }
}

impl Part {
    fn line(&self, now: Time) -> String {
        let mut line = format!("{}: {}", self.name, self.state);
        if let Some(at) = self.read_at {
            line.extend([" ", &now.since(at).ago()]);
        }
        if let (Some(at), Some(to)) = (self.handed_at, &self.handed_to) {
            let ended = if self.state == "unread again" { ", which has ended" } else { "" };
            line.extend(["; handed to ", to, " ", &now.since(at).ago(), ended]);
        }
        if self.announced && self.read_at.is_none() {
            line.push_str("; announced by a hook");
        }
        line
    }
}

/// The table is of an older version, so nothing was looked up in it.
pub(super) fn not_looked_for(id: MessageId, report: &mut Report) {
    report.wrong(
        AREA,
        format!("{id} was not looked for, since the table is of an older version"),
        format!("run `team-table show {}`, which brings the table up to date", id.0),
    );
}

/// There is no such message here: says which there are, and whether another table has it.
pub(super) fn missing(place: &Place<'_>, id: MessageId, report: &mut Report) {
    let open = |table: &Path| Checkup::open(table, &seats_of(table).join("log")).ok();
    let elsewhere = place.nearby.iter().find(|other| {
        open(&other.table)
            .and_then(|mut table| table.read(|tx| tx.message(id)).ok().flatten())
            .is_some()
    });
    let ids = open(&place.workspace.table)
        .and_then(|mut table| table.read(|tx| Ok((tx.first_message()?, tx.last_message()?))).ok());
    let there = match ids {
        Some((Some(first), last)) => {
            format!("there is no message {id} here, only {first} to {last}")
        }
        _ => format!("there is no message {id} here, nor any other"),
    };
    match elsewhere {
        Some(other) => {
            let table = other.table.display().to_string();
            let word = platform::shell_word(&table);
            let command = format!("team-table doctor {} --db-path {word}", id.0);
            report.wrong(
                AREA,
                format!("{there}; another table has one, {}", sanitize::field(&table)),
                format!("run {}", sanitize::field(&command)),
            );
        }
        None => report.wrong(
            AREA,
            there,
            "run `team-table where` where it was sent: it went to another table",
        ),
    }
}
