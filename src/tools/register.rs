//! `register`: who I am, who is here, what waits for me; and another name, role or note.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Access, Cx, SeatChange, Tool,
    list_members::{MemberLine, TaskLine},
    log,
};
use crate::{
    domain::{
        limits, message,
        name::{self, MemberName},
        task::Status,
    },
    error::{Error, Result},
    store::{Board, Joining, Member},
    view::{
        sanitize,
        text::{self, Front},
    },
};

pub(super) struct Register;

/// Introduce yourself; sums up who is here, your mail, tasks and reservations
///
/// Optional: any first call seats you.
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    /// Wished name; a number is added if it is taken
    #[arg(long)]
    name: Option<String>,
    /// One word; others can write to @role
    #[arg(long)]
    role: Option<String>,
    /// What you are good at
    #[arg(long, value_delimiter = ',', help = "What you are good at, with commas: rust,sql")]
    capabilities: Option<Vec<String>>,
    /// What you work on now
    #[arg(long)]
    note: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    name: String,
    role: String,
    note: String,
    /// Why it is not the wished name.
    renamed: Option<String>,
    others: Vec<MemberLine>,
    unread: usize,
    senders: Vec<String>,
    /// Tasks that I hold.
    tasks: Vec<TaskLine>,
    /// How many tasks I could claim now; counts stop at 100.
    ready: usize,
    /// What I have reserved.
    reserved: Vec<String>,
    /// Keys of the shared context that changed since I looked.
    changed_keys: Vec<String>,
    #[serde(skip)]
    front: Front,
}

impl Tool for Register {
    const NAME: &'static str = "register";
    const COMMAND: &'static str = "register";
    const ACCESS: Access = Access::Writes;
    const ALWAYS_LOAD: bool = true;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let profile = Profile::check(params)?;
        let wished = params.name.as_deref().map(MemberName::parse).transpose()?;
        let renamed = match wished {
            // Another spelling of my name is my name.
            Some(wished) if wished != cx.me.name => rename(cx, &wished)?,
            _ => None,
        };
        let member = profile.apply(cx)?;
        let mut others = MemberLine::all(cx)?;
        let me = others.iter().find(|line| line.you);
        let (tasks, reserved) =
            me.map(|line| (line.tasks.clone(), line.reserved.clone())).unwrap_or_default();
        let mine = Board { ready_for: Some(cx.me.id), ..Board::default() };
        let ready = cx.tx.count_tasks(&mine, Status::Pending, limits::COUNT_STOPS_AT)?;
        let changed = cx.tx.context_changed_since(cx.me.id)?;
        cx.tx.mark_context_seen(cx.me.id)?;
        others.retain(|line| !line.you && !line.shown.has_left());
        let unread = cx.tx.unread(cx.me.id, cx.me.reads_as)?;
        cx.effects.said_name = true;
        cx.effects.said_unread = true;
        Ok(Output {
            name: cx.me.name.to_string(),
            role: member.role,
            note: member.note,
            renamed,
            others,
            unread: unread.count,
            senders: unread.senders,
            tasks,
            ready,
            reserved,
            changed_keys: changed.into_iter().map(|change| change.key).collect(),
            front: cx.front,
        })
    }
}

/// What the caller says of itself, checked.
struct Profile {
    role: Option<String>,
    note: Option<String>,
    capabilities: Option<Vec<String>>,
}

impl Profile {
    fn check(params: &Params) -> Result<Profile> {
        let role = match params.role.as_deref().map(str::trim) {
            None => None,
            Some("") => Some(String::new()),
            Some(role) => {
                let role = role.strip_prefix('@').unwrap_or(role);
                let is_taken = name::is_reserved(&role.to_ascii_lowercase());
                if is_taken || MemberName::any(role).is_err() {
                    let what = if is_taken { "cannot be a role" } else { "is not a role" };
                    return Err(Error::invalid(format!("{} {what}", sanitize::quote(role))).hint(
                        "a role is one word of A-Z, a-z, 0-9, `.`, `_` and `-`, 64 at most, such \
                         as `reviewer`; say the rest in `note`",
                    ));
                }
                Some(role.to_owned())
            }
        };
        let note =
            params.note.as_deref().map(|note| message::one_line("note", note)).transpose()?;
        let capabilities = params.capabilities.as_deref().map(capabilities).transpose()?;
        Ok(Profile { role, note, capabilities })
    }

    fn apply(self, cx: &Cx<'_>) -> Result<Member> {
        let before = cx.tx.member(cx.me.id)?;
        let role = self.role.unwrap_or_else(|| before.role.clone());
        let note = self.note.unwrap_or_else(|| before.note.clone());
        let capabilities = self.capabilities.unwrap_or_else(|| before.capabilities.clone());
        let changed =
            role != before.role || note != before.note || capabilities != before.capabilities;
        if changed {
            cx.tx.set_profile(cx.me.id, &role, &note, &capabilities)?;
            let good_at = capabilities.join(", ");
            let said = [("role", &role), ("note", &note), ("good at", &good_at)];
            let said: Vec<String> = said
                .into_iter()
                .filter(|(_, text)| !text.is_empty())
                .map(|(what, text)| format!("{what} {text}"))
                .collect();
            let detail = if said.is_empty() { "nothing".to_owned() } else { said.join(", ") };
            log::member(cx.tx, &cx.me.name, "member.introduced", Some(&detail), cx.now)?;
        }
        Ok(Member { role, note, capabilities, ..before })
    }
}

fn capabilities(given: &[String]) -> Result<Vec<String>> {
    let given: Vec<String> =
        given.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect();
    if given.len() > limits::CAPABILITIES {
        return Err(Error::invalid(format!(
            "{} capabilities; at most {} are allowed",
            given.len(),
            limits::CAPABILITIES
        ))
        .hint("name the ones that others look for"));
    }
    for text in &given {
        let n_chars = text.chars().count();
        if n_chars > limits::CAPABILITY_CHARS {
            return Err(Error::invalid(format!(
                "a capability has {n_chars} characters; at most {} are allowed",
                limits::CAPABILITY_CHARS
            ))
            .hint("a capability is a word or two, such as `rust` or `code review`"));
        }
    }
    Ok(given)
}

/// Moves the caller to another name: claims the new seat, and the old one is freed after the
/// commit. Returns why the name is not the wished one, if it is not.
fn rename(cx: &mut Cx<'_>, wished: &MemberName) -> Result<Option<String>> {
    if !cx.me.is_session {
        return Err(Error::refused(format!("you speak as `{}` here", cx.me.name))
            .hint("a command has the name that --as gives it; only a session can change its own"));
    }
    if cx.me.is_given {
        return Err(Error::refused(format!("you are `{}` by your token or address", cx.me.name))
            .hint("go on under that name; a person can give you another token or address"));
    }
    let mut reason = None;
    let mut seat = cx.seats.claim(wished)?;
    if seat.is_none() {
        reason = Some(format!("somebody sits on the seat of `{wished}`"));
        for name in wished.variants() {
            if name == cx.me.name {
                return Ok(reason);
            }
            seat = cx.seats.claim(&name)?;
            if seat.is_some() {
                break;
            }
        }
    }
    let Some(seat) = seat else { return Err(Error::busy("no seat is free")) };
    let name = seat.name().clone();
    let old = cx.me.clone();
    let member = if let Some(member) = cx.tx.member_named(name.as_str())? {
        member.id
    } else {
        let joining = Joining { name: &name, seatless: false, sub: false };
        cx.tx.insert_member(&joining, cx.now)?
    };
    // What the session said of itself goes with it.
    let profile = cx.tx.member(old.id)?;
    cx.tx.seat_member(member, old.hands_as, cx.now)?;
    cx.tx.set_profile(member, &profile.role, &profile.note, &profile.capabilities)?;
    cx.tx.move_member(old.id, member, cx.now)?;
    log::member(cx.tx, &old.name, "member.moved", Some(name.as_str()), cx.now)?;
    cx.me.id = member;
    cx.me.name = name;
    cx.effects.seat = SeatChange::Move(seat, member);
    Ok(reason)
}

/// At most 2,000 characters: the names first, the notes as far as there is room.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("you are `{}`", self.name);
        if let Some(reason) = &self.renamed {
            text.extend([" (", reason, ")"]);
        }
        if !self.role.is_empty() {
            text.extend([", role ", &sanitize::field(&self.role)]);
        }
        let mail = match self.unread {
            0 => "no unread messages".to_owned(),
            n => text::badge(n, &self.senders, self.front),
        };
        let mut room = limits::DIGEST_CHARS
            .saturating_sub(text.chars().count() + mail.chars().count() + ASIDE);
        let agents = fitting(self.others.iter().map(MemberLine::brief), &mut room);
        if self.others.iter().any(|other| other.name != name::HUMAN) {
            text.extend(["; also here: ", &agents.join(", ")]);
            if agents.len() < self.others.len() {
                let rest = self.others.len() - agents.len();
                let list_members = self.front.list_members();
                text.extend([" and ", &rest.to_string(), " more (", list_members, ")"]);
            }
        } else {
            text.push_str("; no other agent is here yet");
        }
        let notes = self.others.iter().filter(|other| !other.note.is_empty());
        let notes = notes
            .map(|other| format!("\n{} works on {}", other.name, sanitize::field(&other.note)));
        for part in self.board(&mut room) {
            text.extend(["\n", &part]);
        }
        text.extend(fitting(notes, &mut room));
        write!(f, "{text}\n{mail}")
    }
}

impl Output {
    /// What I hold, what I could take, and what has changed: as far as there is room.
    fn board(&self, room: &mut usize) -> Vec<String> {
        let mut lines = Vec::new();
        let mut add = |head: &str, all: Vec<String>, more: &str| {
            if all.is_empty() {
                return;
            }
            *room = room.saturating_sub(head.len() + more.len() + 24);
            let n = all.len();
            let shown = fitting(all.into_iter().take(5), room);
            let rest = match n - shown.len() {
                0 => String::new(),
                rest if shown.is_empty() => format!("{rest} ({more})"),
                rest => format!(" and {rest} more ({more})"),
            };
            lines.push(format!("{head}: {}{rest}", shown.join(", ")));
        };
        add("your tasks", self.tasks.iter().map(ToString::to_string).collect(), "list_tasks");
        let fields = |all: &[String]| all.iter().map(|text| sanitize::field(text)).collect();
        add("your reservations", fields(&self.reserved), "list_members");
        add("shared context changed", fields(&self.changed_keys), "get_shared_context");
        match self.ready {
            0 => {}
            1 => lines.push("1 task is ready: claim_task takes it".to_owned()),
            n => {
                lines
                    .push(format!("{} tasks are ready: claim_task takes the next", text::count(n)));
            }
        }
        lines
    }
}

/// Characters for the words between the parts.
const ASIDE: usize = 100;

/// The first texts, as far as there is room.
fn fitting(texts: impl Iterator<Item = String>, room: &mut usize) -> Vec<String> {
    let mut kept = Vec::new();
    for text in texts {
        let size = text.chars().count() + 2;
        if size > *room {
            break;
        }
        *room -= size;
        kept.push(text);
    }
    kept
}
