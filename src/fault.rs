//! Places where a test can stop or break the program: `TEAM_TABLE_FAULT=after_insert:stop`.
//!
//! Heeded by debug builds only. `stop` says so on stderr and sleeps for ever, so that the test can
//! kill the process at this very place; `wait` says so and goes on when it is given a line on stdin;
//! `panic` panics. A number behind it (`in_tool:panic:2`)
//! means the so-manieth time that the place is passed, and only then; else it is every time.

use std::sync::{
    OnceLock,
    atomic::{AtomicU32, Ordering},
};

static FAULT: OnceLock<Fault> = OnceLock::new();

struct Fault {
    place: String,
    action: String,
    /// At which pass; at every one where there is none.
    at: Option<u32>,
    n_passes: AtomicU32,
}

/// Arms the place that the environment names, once, at start.
pub fn arm(fault: Option<&str>) {
    if cfg!(debug_assertions)
        && let Some((place, action)) = fault.and_then(|fault| fault.split_once(':'))
    {
        let (action, at) = action.split_once(':').unwrap_or((action, ""));
        let (place, action) = (place.to_owned(), action.to_owned());
        let n_passes = AtomicU32::new(0);
        // A second call changes nothing.
        let _armed = FAULT.set(Fault { place, action, at: at.parse().ok(), n_passes });
    }
}

/// A place where the program may be stopped.
pub fn point(place: &str) {
    if cfg!(debug_assertions)
        && let Some(fault) = FAULT.get().filter(|fault| fault.place == place)
    {
        let n_passes = fault.n_passes.fetch_add(1, Ordering::Relaxed) + 1;
        if fault.at.is_none_or(|at| at == n_passes) {
            act(place, &fault.action);
        }
    }
}

#[expect(clippy::panic, clippy::print_stderr, reason = "that is what was asked for")]
fn act(place: &str, action: &str) {
    match action {
        "panic" => panic!("fault: {place}"),
        "stop" => {
            eprintln!("fault: {place}");
            loop {
                std::thread::sleep(std::time::Duration::from_secs(3600));
            }
        }
        "wait" => {
            eprintln!("fault: {place}");
            // Whoever does not write one ends the wait too.
            std::io::stdin().read_line(&mut String::new()).ok();
        }
        _ => {}
    }
}
