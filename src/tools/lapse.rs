//! What lapses by itself: nobody runs when it does, so the next write of any session notes it, and
//! tells the holder.

use std::collections::BTreeMap;

use super::{Cx, log};
use crate::{
    domain::{
        id::{MemberId, TaskId},
        limits,
        member::State,
        name,
        time::{SECOND, Time},
    },
    error::Result,
    store::{Event, Member, Reservation},
    view::{sanitize, text},
};

/// How often a process looks for what has run out,
const RUN_OUT_EVERY: i64 = SECOND;
/// and for holders that are gone, for which it has to look at their seats.
const GONE_EVERY: i64 = 30 * SECOND;

/// When a process looked last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Looked {
    run_out: Option<Time>,
    gone: Option<Time>,
}

/// Notes what has lapsed, as far as it is time to look again. Returns when it looked.
pub(super) fn some(cx: &mut Cx<'_>, mut looked: Looked) -> Result<Looked> {
    let is_due = |last: Option<Time>, every: i64| {
        last.is_none_or(|last| cx.now < last || cx.now.since(last).0 >= every)
    };
    let (run_out_is_due, gone_is_due) =
        (is_due(looked.run_out, RUN_OUT_EVERY), is_due(looked.gone, GONE_EVERY));
    if run_out_is_due {
        run_out(cx)?;
        looked.run_out = Some(cx.now);
    }
    if gone_is_due {
        gone(cx)?;
        looked.gone = Some(cx.now);
    }
    Ok(looked)
}

/// Notes all that has lapsed: for who asks for something that others may hold.
pub(super) fn all(cx: &mut Cx<'_>) -> Result<()> {
    run_out(cx)?;
    gone(cx)
}

fn run_out(cx: &mut Cx<'_>) -> Result<()> {
    if !cx.tx.has_run_out(cx.now)? {
        return Ok(());
    }
    for (holder, ended) in by_holder(cx.tx.run_out(cx.now)?) {
        let holder = cx.tx.member(holder)?;
        end(cx, &holder, &ended, "reservation.ran_out", "their time is over")?;
    }
    Ok(())
}

/// What a member holds that is gone lapses, but for the caller, who is here; what the human holds does not.
fn gone(cx: &mut Cx<'_>) -> Result<()> {
    for holder in cx.tx.reservation_holders()? {
        if holder == cx.me.id {
            continue;
        }
        let holder = cx.tx.member(holder)?;
        if is_gone(cx, &holder) {
            let mut held = cx.tx.reservations(cx.now)?;
            held.retain(|it| it.holder == holder.id);
            end(cx, &holder, &held, "reservation.lapsed", "you were gone")?;
        }
    }
    for holder in cx.tx.task_holders()? {
        let holder = cx.tx.member(holder)?;
        if is_gone(cx, &holder) {
            for task in cx.tx.lapse_tasks_of(holder.id, cx.now)? {
                free(cx, &holder, task)?;
            }
        }
    }
    Ok(())
}

/// Tells of a task that nobody holds any more: who held it, and who made it.
fn free(cx: &mut Cx<'_>, holder: &Member, id: TaskId) -> Result<()> {
    let Some(task) = cx.tx.task(id)? else { return Ok(()) };
    let event = Event {
        actor: name::TEAM_TABLE,
        kind: "task.lapsed",
        task: Some(id),
        detail: Some(holder.name.to_string()),
    };
    cx.tx.log(cx.now, &event)?;
    let title = sanitize::field(&task.title);
    let notice = format!(
        "{id} {title} is pending again, since you were gone. claim_task takes it back, if nobody \
         else has it by then."
    );
    cx.tell(holder, Some(id), None, &notice)?;
    let creator = cx.tx.member(task.creator)?;
    let notice = format!(
        "{id} {title} is pending again, since {} is gone. Anyone may claim it now.",
        holder.name
    );
    cx.tell(&creator, Some(id), None, &notice)?;
    // The next task is another change.
    cx.effects.told.clear();
    Ok(())
}

fn is_gone(cx: &Cx<'_>, member: &Member) -> bool {
    if member.is_human() {
        return false;
    }
    let presence = member.presence(cx.is_held(member));
    presence.is_gone(cx.now) || matches!(presence.state(cx.now), State::Left(_))
}

fn by_holder(reservations: Vec<Reservation>) -> BTreeMap<MemberId, Vec<Reservation>> {
    let mut by_holder: BTreeMap<MemberId, Vec<Reservation>> = BTreeMap::new();
    for reservation in reservations {
        by_holder.entry(reservation.holder).or_default().push(reservation);
    }
    by_holder
}

/// Ends reservations of one member, with one notice.
fn end(
    cx: &mut Cx<'_>,
    holder: &Member,
    ended: &[Reservation],
    kind: &'static str,
    why: &str,
) -> Result<()> {
    for reservation in ended {
        cx.tx.end_reservation(reservation.id, cx.now)?;
    }
    let patterns: Vec<&str> = ended.iter().map(|it| it.pattern.as_str()).collect();
    log::member(cx.tx, &holder.name, kind, Some(&patterns.join("\n")), cx.now)?;
    let shown: Vec<String> = patterns.iter().map(|pattern| sanitize::field(pattern)).collect();
    let shown = text::list(&shown, limits::RESERVED_AT_ONCE / 2);
    let notice = format!(
        "Your reservations ended, since {why}: {shown}. Before you go on editing there, call \
         reserve_files again: others may have reserved or changed these files."
    );
    cx.tell(holder, None, None, &notice)?;
    // The call itself may have to tell the same member something else.
    cx.effects.told.clear();
    Ok(())
}
