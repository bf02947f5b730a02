//! What the streams of both transports have in common.

use std::time::Duration;

/// The headers of a stream: nobody on the way may keep it, or wait for more of it.
pub(super) const EVENT_STREAM: [(&str, &str); 3] = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
];

/// A comment in the stream, so that no proxy takes it for dead, and so that we see if it is.
pub(super) const PING: &str = ": here\n\n";
pub(super) const PING_EVERY: Duration = Duration::from_secs(15);
