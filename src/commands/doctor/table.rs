//! Which table it is, whether it is sound, and which others somebody may sit at instead.

use std::{fs, path::Path, thread, time::Duration};

use serde::Serialize;

use super::{Place, Report, changed_at};
use crate::{
    domain::time::{Age, DAY, Time},
    error::{Error, Kind},
    platform,
    seat::Seats,
    store::{Checkup, Condition, LogState, beside},
    view::{
        sanitize::{self, field},
        text,
    },
    workspace::{Nearby, Reason, Whereabouts, seats_of},
};

pub(super) const AREA: &str = "table";

/// A log this large is not brought into the file, because somebody reads on and on.
const LARGE_LOG: u64 = 16 << 20;
/// Less than this on the disk, and a few messages fill it.
const LITTLE_SPACE: u64 = 16 << 20;

#[derive(Debug, Serialize)]
pub(super) struct Facts {
    table: String,
    reason: String,
    exists: bool,
    checkout: String,
    branch: Option<String>,
    bytes: u64,
    log_bytes: u64,
    /// Pages in the log, and how many of them are in the file already.
    log_pages: Option<(i64, i64)>,
    version: Option<i64>,
    /// What is wrong with the file; none where it was not looked at.
    faults: Option<Vec<String>>,
    free_bytes: Option<u64>,
    network_disk: Option<&'static str>,
    others: Vec<Other>,
}

/// A turn to write takes milliseconds.
const TURN_LOOKS: u32 = 7;
const BETWEEN_TURN_LOOKS: Duration = Duration::from_millis(50);

/// Another table.
#[derive(Debug, Serialize)]
struct Other {
    table: String,
    #[serde(skip)]
    place: Whereabouts,
    /// Who sits there now.
    seated: Vec<String>,
    changed_at: Option<Time>,
}

/// Also opens the table, where it can be looked into.
pub(super) fn look(place: &Place<'_>, report: &mut Report) -> (Facts, Option<Checkup>) {
    let workspace = place.workspace;
    let table = workspace.table.as_path();
    let disk = table.ancestors().find(|path| path.exists()).unwrap_or(table);
    let mut facts = Facts {
        table: table.display().to_string(),
        reason: workspace.reason.to_string(),
        exists: table.exists(),
        checkout: workspace.checkout.display().to_string(),
        branch: workspace.branch.clone(),
        bytes: size(table),
        log_bytes: size(&beside(table, "-wal")),
        log_pages: None,
        version: None,
        faults: None,
        free_bytes: platform::free_bytes(disk),
        network_disk: platform::network_disk(disk),
        others: place.nearby.iter().map(other).collect(),
    };
    for warning in &workspace.warnings {
        report.note(AREA, warning);
    }
    facts.judge_choice(place, report);
    facts.judge_disk(place, disk, report);
    judge_turn(place, report);
    if facts.exists && workspace.is_in_git() {
        report.wrong(
            AREA,
            "the table is in git: whoever can push can write as anybody, as you too, and what is \
             said here goes with every clone",
            "run `git rm -r --cached .agent-comms` and commit that",
        );
    }
    let checkup = if facts.exists {
        facts.open(place, report)
    } else {
        let left = facts.log_bytes > 0 || beside(table, "-shm").exists();
        if left {
            report.note(AREA, "what lies beside it is left over, and goes with the next call");
        }
        None
    };
    (facts, checkup)
}

impl Facts {
    fn judge_choice(&self, place: &Place<'_>, report: &mut Report) {
        if place.workspace.reason == Reason::Variable
            && let Some(path) = place.config.db.as_ref().filter(|path| path.is_relative())
        {
            report.wrong(
                AREA,
                format!(
                    "`TEAM_TABLE_DB` is {}, which is another file for whoever starts in another \
                     folder",
                    shown(path)
                ),
                format!("set it to the whole path: {}", field(&self.table)),
            );
        }
        // Who names another table here and now knows that there are two.
        if place.workspace.reason != Reason::Option {
            for other in &self.others {
                other.judge(self, place.now, report);
            }
        }
    }

    fn judge_disk(&self, place: &Place<'_>, disk: &Path, report: &mut Report) {
        if let Some(kind) = self.network_disk {
            report.wrong(
                AREA,
                format!("the table is on a network disk ({kind}), where SQLite's log cannot be relied on"),
                "put the table on a local disk and name it with `TEAM_TABLE_DB`",
            );
        }
        if let Some(free) = self.free_bytes.filter(|free| *free < LITTLE_SPACE) {
            report.wrong(
                AREA,
                format!("only {} KiB are free on its disk", free / 1024),
                "free some space",
            );
        }
        let folder = place.workspace.table.parent().filter(|folder| folder.exists());
        let seats = Some(place.workspace.seats.as_path()).filter(|seats| seats.exists());
        let table = Some(place.workspace.table.as_path()).filter(|_| self.exists);
        let all = [folder.or(Some(disk)), seats, table];
        if let Some(path) = all.into_iter().flatten().find(|path| !platform::may_write(path)) {
            report.wrong(
                AREA,
                format!("{} cannot be written by you", shown(path)),
                "make it writable for the user that runs your agents, or run this outside a sandbox",
            );
        }
    }

    fn open(&mut self, place: &Place<'_>, report: &mut Report) -> Option<Checkup> {
        let table = &place.workspace.table;
        if table.is_dir() {
            report.wrong(
                AREA,
                format!("{} is a folder; it has to be a file", shown(table)),
                "move it away: the next call makes the table",
            );
            return None;
        }
        let opened = Checkup::open(table, &place.workspace.seats.join("log"))
            .and_then(|checkup| Ok((checkup.condition()?, checkup)));
        let (condition, checkup) = match opened {
            Ok(opened) => opened,
            Err(err) => {
                self.judge_unreadable(&err, report);
                return None;
            }
        };
        self.version = Some(condition.version);
        self.log_pages = condition.log_pages;
        self.judge_condition(&condition, checkup.log, report);
        self.faults = Some(condition.faults);
        (!condition.is_old && !condition.is_empty).then_some(checkup)
    }

    fn judge_unreadable(&self, err: &Error, report: &mut Report) {
        match err.kind() {
            Kind::Busy => report.wrong(AREA, err.to_string(), self.find_program()),
            Kind::NeedsWrite => report.wrong(
                AREA,
                "the table was replaced or deleted while it was looked at",
                "run `team-table doctor` again",
            ),
            _ => report.error(AREA, err, "move it away, and begin anew or bring back a copy"),
        }
    }

    fn judge_condition(&self, condition: &Condition, log: LogState, report: &mut Report) {
        if condition.is_old {
            report.note(
                AREA,
                format!(
                    "it is of version {}; the next call brings it to {}, and only then is looked \
                     inside",
                    condition.version, condition.newest
                ),
            );
        }
        if !condition.faults.is_empty() {
            let faults: Vec<String> =
                condition.faults.iter().map(|fault| sanitize::quote(fault)).collect();
            report.wrong(
                AREA,
                format!("the table is damaged: {}", text::list(&faults, 2)),
                "end all agents, move `comms.db` and what is beside it away, and begin anew or \
                 bring back a copy",
            );
        }
        if log == LogState::Others {
            report.note(AREA, "the log beside it is another table's, and goes with the next call");
        }
        if let Some((all, done)) = self.log_pages
            && self.log_bytes > LARGE_LOG
            && done < all
        {
            report.wrong(
                AREA,
                format!(
                    "its log has grown to {} MiB, since some program goes on reading",
                    self.log_bytes >> 20
                ),
                self.find_program(),
            );
        }
    }

    /// How to find the program that is in the way.
    fn find_program(&self) -> String {
        let command = format!("fuser {}", platform::shell_word(&self.table));
        format!("find it with {} and end it", field(&command))
    }

    /// Nothing is in it, for all that is known.
    pub(super) fn is_empty(&self) -> bool {
        !self.exists || self.bytes == 0
    }

    pub(super) fn lines(&self, now: Time) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", field(&self.table), self.reason)];
        if !self.exists {
            lines.push("it is not there yet: the first call of an agent makes it".to_owned());
        } else if self.is_empty() {
            lines.push("it is empty yet: the first call of an agent fills it".to_owned());
        } else if let (Some(version), Some(faults)) = (self.version, &self.faults) {
            let sound = if faults.is_empty() { "sound" } else { "damaged" };
            let (size, log) = (self.bytes.div_ceil(1024), self.log_bytes.div_ceil(1024));
            lines.push(format!("{sound}, version {version}, {size} KiB, its log {log} KiB"));
        }
        for other in &self.others {
            lines.push(other.line(now));
        }
        lines
    }
}

/// Writers take turns; one that was stopped in its own leaves everybody waiting.
fn judge_turn(place: &Place<'_>, report: &mut Report) {
    let seats = Seats::new(place.workspace.seats.clone());
    let log = beside(&place.workspace.table, "-wal");
    let before = changed_at(&log);
    for look in 0..TURN_LOOKS {
        if !seats.turn_is_taken() {
            return;
        }
        if look + 1 < TURN_LOOKS {
            thread::sleep(BETWEEN_TURN_LOOKS);
        }
    }
    // Where somebody writes all the time, one turn follows another.
    if changed_at(&log) == before {
        let lock = place.workspace.seats.join("write.lock");
        let command = format!("fuser {}", platform::shell_word(&lock.display().to_string()));
        report.wrong(
            AREA,
            "somebody has the turn to write and does not write, so that nobody can",
            format!("find it with {}, and end it or let it go on", field(&command)),
        );
    }
}

impl Other {
    fn judge(&self, used: &Facts, now: Time, report: &mut Report) {
        let table = field(&self.table);
        let lately = self.changed_at.filter(|at| now.since(*at) < Age(DAY));
        if self.seated.is_empty() && lately.is_none() {
            return;
        }
        let who = match (self.seated.as_slice(), lately) {
            ([], Some(at)) => {
                format!("somebody wrote {} to another table", now.since(at).ago())
            }
            ([one], _) => format!("{one} sits at another table"),
            (all, _) => format!("{} sit at another table", text::list(all, 5)),
        };
        let todo = match self.place {
            // Where an `.agent-comms` decides, the one that is gone decides no more.
            Whereabouts::Checkout | Whereabouts::Below => format!(
                "end what sits there, move {} away, and start it again",
                field(&parent(&self.table))
            ),
            Whereabouts::Above | Whereabouts::Usual | Whereabouts::Variable => {
                let variable = format!("TEAM_TABLE_DB={}", platform::shell_word(&used.table));
                format!("start it again with {}", field(&variable))
            }
        };
        report.wrong(AREA, format!("{who}, {table}, {}", self.whereabouts()), todo);
    }

    fn whereabouts(&self) -> &'static str {
        match self.place {
            Whereabouts::Variable => "which `TEAM_TABLE_DB` names",
            Whereabouts::Usual => "which is the usual one here",
            Whereabouts::Checkout => "in another checkout of this repository",
            Whereabouts::Above => "in a folder above",
            Whereabouts::Below => "which comes first for all that start below it",
        }
    }

    fn line(&self, now: Time) -> String {
        let changed = match self.changed_at {
            Some(at) => format!(", written {}", now.since(at).ago()),
            None => String::new(),
        };
        let seated = match self.seated.len() {
            0 => "nobody sits there".to_owned(),
            n => format!("{n} there"),
        };
        let table = field(&self.table);
        format!("another: {table}, {} ({seated}{changed})", self.whereabouts())
    }
}

fn other(nearby: &Nearby) -> Other {
    let changed = |suffix| changed_at(&beside(&nearby.table, suffix));
    Other {
        table: nearby.table.display().to_string(),
        place: nearby.place,
        seated: Seats::new(seats_of(&nearby.table)).held(),
        changed_at: changed("").max(changed("-wal")),
    }
}

fn parent(path: &str) -> String {
    Path::new(path).parent().unwrap_or(Path::new(path)).display().to_string()
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

fn shown(path: &Path) -> String {
    field(&path.display().to_string())
}
