//! Places where a test can stop or break the program: `TEAM_TABLE_FAULT=after_insert:stop`.
//!
//! Heeded by debug builds only. `stop` says so on stderr and sleeps for ever, so that the test can
//! kill the process at this very place; `panic` panics.

use std::sync::OnceLock;

static FAULT: OnceLock<(String, String)> = OnceLock::new();

/// Arms the place that the environment names, once, at start.
pub fn arm(fault: Option<&str>) {
    if cfg!(debug_assertions)
        && let Some((place, action)) = fault.and_then(|fault| fault.split_once(':'))
    {
        // A second call changes nothing.
        let _armed = FAULT.set((place.to_owned(), action.to_owned()));
    }
}

/// A place where the program may be stopped.
pub fn point(place: &str) {
    if cfg!(debug_assertions)
        && let Some((_, action)) = FAULT.get().filter(|(armed, _)| armed == place)
    {
        act(place, action);
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
        _ => {}
    }
}
