//! How much of anything there may be, as the documentation states it.

/// Bytes of a message body as sent.
pub const BODY_BYTES: usize = 16 * 1024;
/// Bytes of a message body as shown: every line behind `| `, control characters escaped.
pub const BODY_SHOWN_BYTES: usize = 20_000;
/// Bytes of one result.
pub const RESULT_BYTES: usize = 24_000;
/// Of these, what is kept free for the first line, the badge and what a desk says first.
pub const ASIDE_BYTES: usize = 1_200;
/// Characters of the summary that `register` answers with.
pub const DIGEST_CHARS: usize = 2_000;
/// Characters of a one-line field: note, reason, title.
pub const LINE_CHARS: usize = 200;
/// Capabilities of a member.
pub const CAPABILITIES: usize = 20;
/// Characters of one capability.
pub const CAPABILITY_CHARS: usize = 64;
/// Characters of a client's name, and of its version, as it tells them.
pub const CLIENT_CHARS: usize = 64;
/// Bytes of a client's id of a session.
pub const SESSION_KEY_BYTES: usize = 128;
/// Where counts of unread messages stop: they are shown as `99+`.
pub const COUNT_STOPS_AT: usize = 100;
/// Messages in one result, unless the caller asks for another number.
pub const PAGE: i64 = 20;
/// Messages in one result at most.
pub const PAGE_MAX: i64 = 100;
/// Bytes of a query.
pub const QUERY_BYTES: usize = 500;
/// Words of a query.
pub const QUERY_WORDS: usize = 16;
/// Messages that one search looks at before it says where to go on.
pub const SEARCH_MESSAGES: usize = 200_000;
/// Bytes of bodies that one search looks at: nothing else is done meanwhile.
pub const SEARCH_BYTES: usize = 64 * 1024 * 1024;
/// Seconds that `wait_for_messages` waits, unless the caller asks for another number.
pub const WAIT_SECONDS: i64 = 45;
/// Seconds at most: clients give up on a silent call after 60 (opencode 1.18).
pub const WAIT_SECONDS_MAX: i64 = 50;
/// Broadcasts from before it came that a session finds in its inbox, at most.
pub const LATE_BROADCASTS: i64 = 20;
/// Tasks that one task waits for.
pub const DEPENDENCIES: usize = 50;
/// Bytes of a description, comment or result that a notice quotes, as they are shown.
pub const QUOTE_BYTES: usize = 2_000;
/// Open tasks in one result at most.
pub const OPEN_TASKS: i64 = 200;
/// Lines of a task's history that are looked at, from its end and from its beginning.
pub const HISTORY_LINES: usize = 100;
/// Characters of a key of the shared context.
pub const KEY_CHARS: usize = 128;
/// Bytes of a value of the shared context.
pub const VALUE_BYTES: usize = 64 * 1024;
/// Bytes of a value as one result shows it: what is over is left out, and counted.
pub const VALUE_SHOWN_BYTES: usize = 20_000;
/// Bytes of a value as the list of all keys shows it: of a longer one, only its size.
pub const VALUE_LISTED_BYTES: usize = 1_000;
/// Paths in one call of `reserve_files`.
pub const RESERVED_AT_ONCE: usize = 50;
/// Reservations that one member may have.
pub const RESERVATIONS: usize = 200;
/// Minutes that a reservation holds, unless the caller asks for another number.
pub const RESERVED_MINUTES: i64 = 60;
/// Minutes at most: a day.
pub const RESERVED_MINUTES_MAX: i64 = 1440;
