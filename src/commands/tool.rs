//! A tool as a command: the same code as over MCP, printed.

use std::{io::Write, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{flush, in_commands, needs_table, print_json, print_no_table, print_text, say};
use crate::{
    error::Result,
    tools::{Access, Answer, Desk, Job},
    transport::{event_loop, queue::Queue, wake},
};

/// How long what was printed may take to be written down as read.
const SETTLE: Duration = Duration::from_secs(5);

/// Runs a tool and prints its result. What it hands out counts as read once it was printed and
/// flushed. Only a command that begins something makes the table where there is none. Returns the
/// exit code.
///
/// # Errors
/// What the caller cannot mend; what it can is printed to stderr, with its exit code.
pub fn run(desk: Desk, job: &Job, json: bool, out: &mut dyn Write) -> Result<u8> {
    if !job.entry.founds {
        if job.entry.access == Access::Writes {
            needs_table(&desk)?;
        } else if !desk.table_exists() {
            print_no_table(&desk.workspace().table, json, out)?;
            flush(out)?;
            return Ok(u8::from(job.waits.is_some()));
        }
    }
    let queue = Queue::new(desk);
    let runtime = event_loop()?;
    let answer = runtime.block_on(call(&queue, job))?;
    let code = show(&answer, job, json, out)?;
    if let Some(handing) = answer.handing {
        runtime.block_on(queue.settle(vec![handing], Vec::new(), SETTLE))?;
    }
    runtime.shutdown_background();
    Ok(code)
}

async fn call(queue: &Queue, job: &Job) -> Result<Answer> {
    match job.waits {
        None => queue.call(job, None, |_, _| {}).await,
        Some(limit) => {
            let never = CancellationToken::new();
            wake::wait(queue, job, None, limit, &never, |_, _| {}).await
        }
    }
}

fn show(answer: &Answer, job: &Job, json: bool, out: &mut dyn Write) -> Result<u8> {
    if let Some(err) = &answer.error {
        say(&in_commands(&answer.text()));
        return Ok(err.exit_code());
    }
    if json {
        print_json(out, &answer.json)?;
    } else {
        print_text(out, &answer.text())?;
    }
    flush(out)?;
    let nothing_came = job.waits.is_some() && answer.handing.is_none();
    Ok(u8::from(nothing_came))
}
