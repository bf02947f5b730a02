//! What happened, in words: a line of the log without its time.

use super::{sanitize, text};
use crate::domain::id::TaskId;

/// A line of the log that is no message: our words, and the text of others that belongs below
/// them.
pub fn happened<'a>(
    actor: &str,
    kind: &str,
    task: Option<TaskId>,
    detail: &'a str,
) -> (String, Option<&'a str>) {
    let task = task.map_or_else(|| "a task".to_owned(), |id| id.to_string());
    if let Some((words, text)) = text::task_event(kind, &task, detail) {
        return (sanitize::line(&format!("{actor} {words}")).into_owned(), text);
    }
    let words = match kind {
        "member.joined" => format!("{actor} joined"),
        "member.left" => format!("{actor} left"),
        "member.moved" => format!("{actor} is now {detail}"),
        "member.noted" if detail.is_empty() => format!("{actor} cleared its note"),
        "member.noted" => format!("{actor} works on {}", sanitize::field(detail)),
        "member.introduced" => format!("{actor} introduced itself: {}", sanitize::field(detail)),
        "session.began" => format!("{actor} sat down with {}", sanitize::field(detail)),
        "message.handed" => format!("{actor} was handed {detail}"),
        "message.read" => format!("{actor} read {detail}"),
        "message.unhanded" => format!("{actor} did not get {detail}: unread again"),
        "context.shared" | "context.removed" => {
            let (version, key) = detail.split_once(' ').unwrap_or(("", detail));
            let key = sanitize::field(key);
            match kind {
                "context.shared" => format!("{actor} shared {key}, version {version}"),
                _ => format!("{actor} removed {key} from the shared context"),
            }
        }
        "reservation.made" => format!("{actor} reserved {}", fields(detail)),
        "reservation.released" => format!("{actor} released {}", fields(detail)),
        "reservation.ran_out" => {
            format!("the time was over for which {actor} had reserved {}", fields(detail))
        }
        "reservation.lapsed" => format!("{actor} is gone and lost {}", fields(detail)),
        "table.reset" => format!("{actor} reset the table"),
        // A newer version wrote it.
        other => format!("{actor} {} {}", sanitize::field(other), sanitize::field(detail)),
    };
    // Names and numbers stand bare in it; a table that came from somebody else may hold anything.
    (sanitize::line(&words).into_owned(), None)
}

/// Fields, of which each is a line.
fn fields(lines: &str) -> String {
    lines.split('\n').map(sanitize::field).collect::<Vec<_>>().join(", ")
}
