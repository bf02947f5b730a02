//! Tasks: their states, and who may take which step.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use super::id::MemberId;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Status {
    Pending,
    #[value(alias = "in-progress")]
    InProgress,
    Blocked,
    Review,
    Done,
    Cancelled,
}

/// The order in which ready tasks are taken.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Low,
    #[default]
    Medium,
    High,
}

/// Who has a task, or is to have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Nobody,
    Member(MemberId),
}

/// What the one who takes a step is to the task, and what became of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are facts that do not depend on each other"
)]
pub struct Who {
    pub is_holder: bool,
    pub is_creator: bool,
    pub is_human: bool,
    /// The creator has left: whoever is here judges in its place.
    pub creator_left: bool,
    /// Who holds the task is gone, and so does not hold it any more.
    pub holder_gone: bool,
}

/// A step that may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The task goes to whoever takes the step, if it can be had.
    Claim,
    Move,
    /// The status is what it was; its holder may say so again.
    Stay,
}

/// Why a step may not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The task stands there already.
    Already,
    /// No step leads from the one status to the other.
    NoStep,
    /// It is somebody else's step: whose.
    NotYours(&'static str),
}

/// Whether a step may be taken.
///
/// # Errors
/// Why not.
pub fn step(from: Status, to: Status, who: Who) -> Result<Step, Refusal> {
    use Status::{Blocked, Cancelled, Done, InProgress, Pending, Review};
    let allowed = |is_allowed: bool, whose| {
        if is_allowed { Ok(Step::Move) } else { Err(Refusal::NotYours(whose)) }
    };
    match (from, to) {
        (Pending, InProgress) => Ok(Step::Claim),
        (InProgress | Blocked, InProgress) if who.holder_gone && !who.is_holder => Ok(Step::Claim),
        (from, to) if from == to && from.is_held() && who.is_holder => Ok(Step::Stay),
        (from, to) if from == to => Err(Refusal::Already),
        (InProgress, Blocked | Review | Done | Pending) | (Blocked, InProgress) => {
            allowed(who.is_holder, "its holder")
        }
        (Review, Done | InProgress) => allowed(who.is_creator || who.creator_left, "its creator"),
        (Pending | InProgress | Blocked | Review, Cancelled) | (Done | Cancelled, Pending) => {
            allowed(who.is_creator || who.is_human, "its creator or the human")
        }
        _ => Err(Refusal::NoStep),
    }
}

impl Holder {
    pub fn id(self) -> Option<MemberId> {
        match self {
            Holder::Nobody => None,
            Holder::Member(id) => Some(id),
        }
    }
}

impl Status {
    pub const ALL: [Status; 6] = [
        Status::Pending,
        Status::InProgress,
        Status::Blocked,
        Status::Review,
        Status::Done,
        Status::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Blocked => "blocked",
            Status::Review => "review",
            Status::Done => "done",
            Status::Cancelled => "cancelled",
        }
    }

    /// As it stands in a sentence: `T7 is in review`.
    pub fn said(self) -> &'static str {
        if self == Status::Review { "in review" } else { self.as_str() }
    }

    pub fn from_column(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// There is nothing more to do.
    pub fn is_ended(self) -> bool {
        matches!(self, Status::Done | Status::Cancelled)
    }

    /// Somebody works on it, or answers for it.
    pub fn is_held(self) -> bool {
        matches!(self, Status::InProgress | Status::Blocked | Status::Review)
    }

    /// Where steps lead from here, whoever takes them.
    pub fn next(self) -> Vec<Status> {
        let anybody = Who {
            is_holder: true,
            is_creator: true,
            is_human: true,
            creator_left: true,
            holder_gone: false,
        };
        let leads_to = |to: &Status| *to != self && step(self, *to, anybody).is_ok();
        Status::ALL.into_iter().filter(leads_to).collect()
    }
}

impl Priority {
    pub const ALL: [Priority; 3] = [Priority::Low, Priority::Medium, Priority::High];

    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Medium => "medium",
            Priority::High => "high",
        }
    }

    /// As it is ordered in the table.
    pub fn rank(self) -> i64 {
        match self {
            Priority::Low => 0,
            Priority::Medium => 1,
            Priority::High => 2,
        }
    }

    pub fn from_rank(rank: i64) -> Priority {
        Priority::ALL.into_iter().find(|priority| priority.rank() == rank).unwrap_or_default()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// For models a status is one of these words. A derived schema would tell them this type's comment.
impl schemars::JsonSchema for Status {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Status".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "enum": Status::ALL.map(Status::as_str)})
    }
}

impl schemars::JsonSchema for Priority {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Priority".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "enum": Priority::ALL.map(Priority::as_str)})
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal, Status, Step, Who, step};

    /// Everyone that the one who takes a step may be.
    fn everybody() -> impl Iterator<Item = Who> {
        (0..32).map(|bits| Who {
            is_holder: bits & 1 != 0,
            is_creator: bits & 2 != 0,
            is_human: bits & 4 != 0,
            creator_left: bits & 8 != 0,
            holder_gone: bits & 16 != 0,
        })
    }

    /// The whole table, as it is documented: from, to, who.
    #[test]
    fn every_pair() {
        let table = [
            ("pending", "in_progress", "claim"),
            ("pending", "cancelled", "creator human"),
            ("in_progress", "blocked", "holder"),
            ("in_progress", "review", "holder"),
            ("in_progress", "done", "holder"),
            ("in_progress", "pending", "holder"),
            ("in_progress", "cancelled", "creator human"),
            ("blocked", "in_progress", "holder or gone"),
            ("blocked", "cancelled", "creator human"),
            ("review", "done", "creator or left"),
            ("review", "in_progress", "creator or left"),
            ("review", "cancelled", "creator human"),
            ("done", "pending", "creator human"),
            ("cancelled", "pending", "creator human"),
            ("in_progress", "in_progress", "stays or gone"),
            ("blocked", "blocked", "stays"),
            ("review", "review", "stays"),
        ];
        for from in Status::ALL {
            for to in Status::ALL {
                let row = table.iter().find(|row| (row.0, row.1) == (from.as_str(), to.as_str()));
                for who in everybody() {
                    let over = who.holder_gone && !who.is_holder;
                    let expected = match row.map(|row| row.2) {
                        Some("claim") => Some(Step::Claim),
                        Some("holder or gone" | "stays or gone") if over => Some(Step::Claim),
                        Some("holder" | "holder or gone") if who.is_holder => Some(Step::Move),
                        Some("creator human") if who.is_creator || who.is_human => Some(Step::Move),
                        Some("creator or left") if who.is_creator || who.creator_left => {
                            Some(Step::Move)
                        }
                        Some("stays" | "stays or gone") if who.is_holder => Some(Step::Stay),
                        _ => None,
                    };
                    let got = step(from, to, who);
                    assert_eq!(got.ok(), expected, "{from} -> {to}, {who:?}");
                    if let Err(refusal) = got {
                        let is_right = match refusal {
                            Refusal::Already => from == to,
                            Refusal::NoStep => from != to && row.is_none(),
                            Refusal::NotYours(whose) => row.is_some() && whose.starts_with("its "),
                        };
                        assert!(is_right, "{from} -> {to}, {who:?}: {refusal:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn steps_that_lead_on() {
        let next = |status: Status| status.next().iter().map(|to| to.as_str()).collect::<Vec<_>>();
        assert_eq!(next(Status::Pending), ["in_progress", "cancelled"]);
        assert_eq!(next(Status::Review), ["in_progress", "done", "cancelled"]);
        assert_eq!(next(Status::Done), ["pending"]);
    }
}
