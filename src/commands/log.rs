//! `log`: every message with its body and every change, as they happen with `-f`; marks nothing.

use std::{
    io::{IsTerminal as _, Write},
    time::Duration,
};

use jiff::{Timestamp, ZonedDateTime, tz::TimeZone};

use super::{flush, no_table, print_json, print_text, say};
use crate::{
    domain::time::Time,
    error::{Error, Kind, Result},
    store::{LogLine, LogPlace},
    tools::Desk,
    view::{events::happened, sanitize, text::Header},
};

/// How soon a change is shown with `-f`.
const LOOK: Duration = Duration::from_millis(200);
/// Lines that are shown of one transaction.
const PAGE: i64 = 500;

/// Show every message and every change; marks nothing as read
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Go on showing what happens until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Begin so long ago, or at this time: 2h, 30m, 2026-11-29 14:00
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

/// Prints the log; `-f` goes on until it is interrupted or nobody reads.
///
/// # Errors
/// A time that is none (exit code 2); the table cannot be read.
pub fn run(args: &Args, mut desk: Desk, json: bool, out: &mut dyn Write) -> Result<u8> {
    let since = match &args.since {
        Some(text) => begin(text, desk.now())?,
        None => Time(i64::MIN),
    };
    let plain = !std::io::stdout().is_terminal();
    let mut place = LogPlace::default();
    let mut epoch = None;
    let mut pulse = None;
    let mut is_in_the_way = false;
    // What is wrong with it, if anything, the first look below says.
    if matches!(desk.look(|_| Ok(())), Ok(None)) {
        say(&no_table(&desk.workspace().table));
    }
    loop {
        loop {
            let page = desk.look(|cx| {
                // The table is another one, or was emptied: its log begins anew.
                let now = cx.tx.epoch()?;
                let after = if epoch == Some(now) { place } else { LogPlace::default() };
                Ok((now, cx.tx.log_lines(after, since, PAGE)?, cx.tx.log_end()?))
            });
            let page = match page {
                // Somebody holds, deletes or replaces it: that passes, and what was shown stays.
                Err(err) if args.follow && may_pass(&err) => {
                    if !is_in_the_way {
                        say(&format!("{err}; this goes on when the table can be read again"));
                    }
                    is_in_the_way = true;
                    pulse = None;
                    break;
                }
                page => page?,
            };
            is_in_the_way = false;
            let Some((now, lines, end)) = page else { break };
            if epoch != Some(now) {
                // Another table, whose numbers begin anew.
                (epoch, place) = (Some(now), LogPlace::default());
            }
            for line in &lines {
                place.pass(line);
                if json {
                    print_json(out, &as_json(line))?;
                } else {
                    print_text(out, &as_text(line, plain))?;
                }
            }
            if i64::try_from(lines.len()).is_ok_and(|n_lines| n_lines < PAGE) {
                // What is older than `since` is not read again.
                place = end;
                break;
            }
        }
        flush(out)?;
        if !args.follow {
            return Ok(0);
        }
        loop {
            std::thread::sleep(LOOK);
            let now = desk.pulse();
            if now.is_none() || now != pulse {
                pulse = now;
                break;
            }
        }
    }
}

fn may_pass(err: &Error) -> bool {
    matches!(err.kind(), Kind::Busy | Kind::Storage | Kind::NeedsWrite)
}

/// A span before now, or a date with a time.
fn begin(text: &str, now: Time) -> Result<Time> {
    let wrong = || {
        Error::usage(format!("--since {} is not a time", sanitize::field(text)))
            .hint("such as 2h, 30m, 3d, 2026-11-29 or `2026-11-29 14:00`")
    };
    if let Ok(span) = text.parse::<jiff::Span>() {
        let now = Timestamp::from_millisecond(now.0).map_err(|_| wrong())?;
        let now = ZonedDateTime::new(now, TimeZone::system());
        let then = now.checked_sub(span.abs()).map_err(|_| wrong())?;
        return Ok(Time(then.timestamp().as_millisecond()));
    }
    let then = text
        .parse::<Timestamp>()
        .or_else(|_| {
            text.parse::<jiff::civil::DateTime>()
                .and_then(|at| at.to_zoned_datetime(TimeZone::system()))
                .map(|at| at.timestamp())
        })
        .map_err(|_| wrong())?;
    Ok(Time(then.as_millisecond()))
}

/// The time of day on a terminal; date and time where the text goes elsewhere.
pub(super) fn clock(at: Time, plain: bool) -> String {
    let Ok(at) = Timestamp::from_millisecond(at.0) else { return "?".to_owned() };
    let at = ZonedDateTime::new(at, TimeZone::system());
    let form = if plain { "%Y-%m-%d %H:%M:%S" } else { "%H:%M:%S" };
    at.strftime(form).to_string()
}

fn as_text(line: &LogLine, plain: bool) -> String {
    let at = clock(line.at, plain);
    if let Some(message) = &line.message {
        let header = Header {
            id: message.id,
            sender: &message.sender,
            to: &message.audience,
            kind: message.kind,
            reply_to: message.reply_to,
            sent_at: message.sent_at,
            late: false,
            again: false,
        };
        return format!("{at} {}\n{}", header.facts(), sanitize::fence(&message.body));
    }
    let detail = line.detail.as_deref().unwrap_or_default();
    match happened(&line.actor, &line.kind, line.task, detail) {
        (words, Some(text)) => format!("{at} {words}\n{}", sanitize::fence(text)),
        (words, None) => format!("{at} {words}"),
    }
}

fn as_json(line: &LogLine) -> serde_json::Value {
    let message = line.message.as_ref().map(|message| {
        serde_json::json!({
            "id": message.id,
            "from": message.sender,
            "to": message.audience,
            "kind": message.kind,
            "reply_to": message.reply_to,
            "body": message.body,
        })
    });
    serde_json::json!({
        "id": line.key(),
        "at": line.at,
        "actor": line.actor,
        "kind": line.kind,
        "task": line.task,
        "detail": line.detail,
        "message": message,
    })
}

#[cfg(test)]
mod tests {
    use super::{Time, begin};

    #[test]
    fn times_to_begin_at() {
        let now = Time(1_800_000_000_000);
        assert_eq!(begin("2h", now).unwrap(), now.before(7_200_000));
        assert_eq!(begin("30m", now).unwrap(), now.before(1_800_000));
        assert_eq!(begin("1d", now).unwrap(), now.before(86_400_000));
        assert_eq!(begin("2026-11-29T14:00:00Z", now).unwrap(), Time(1_795_960_800_000));
        begin("2026-11-29 14:00", now).unwrap();
        begin("2026-11-29", now).unwrap();
        for wrong in ["", "yesterday", "5", "2026-13-01"] {
            assert_eq!(begin(wrong, now).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }
}
