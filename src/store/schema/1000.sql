-- One row: facts about the table itself. `epoch` is another number after each reset and in each
-- new file, so that a running server sees that its rows are gone.
CREATE TABLE about (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    reset_at INTEGER
) STRICT;

-- AUTOINCREMENT where an id is told to others: it is never another thing's again.
CREATE TABLE member (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL COLLATE NOCASE UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('agent', 'human', 'program')),
    seatless INTEGER NOT NULL DEFAULT 0,
    sub INTEGER NOT NULL DEFAULT 0,
    role TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',
    capabilities TEXT NOT NULL DEFAULT '[]',
    joined_at INTEGER NOT NULL,
    heartbeat_at INTEGER,
    left_at INTEGER,
    moved_to INTEGER REFERENCES member (id) ON DELETE SET NULL,
    -- The session that sits there, or sat there last.
    session_id INTEGER,
    -- The flood guard's window.
    window_at INTEGER NOT NULL DEFAULT 0,
    window_n INTEGER NOT NULL DEFAULT 0
) STRICT;

-- By which key a client's session finds the member it had before.
CREATE TABLE member_key (
    family TEXT NOT NULL,
    key TEXT NOT NULL,
    member_id INTEGER NOT NULL REFERENCES member (id) ON DELETE CASCADE,
    PRIMARY KEY (family, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    member_id INTEGER NOT NULL REFERENCES member (id) ON DELETE CASCADE,
    family TEXT NOT NULL,
    key TEXT,
    client TEXT NOT NULL,
    client_version TEXT NOT NULL,
    server_version TEXT NOT NULL,
    pid INTEGER NOT NULL,
    checkout TEXT NOT NULL,
    branch TEXT,
    began_at INTEGER NOT NULL
) STRICT;

CREATE TABLE message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sender_id INTEGER NOT NULL REFERENCES member (id),
    kind TEXT NOT NULL CHECK (kind IN ('message', 'auto')),
    -- What the sender wrote to: a member's name, '@role' or 'everyone'.
    audience TEXT NOT NULL,
    is_broadcast INTEGER NOT NULL DEFAULT 0,
    -- The other party of a message to one member.
    recipient_id INTEGER REFERENCES member (id),
    reply_to INTEGER REFERENCES message (id),
    -- The first message of the thread; itself where it begins one.
    thread_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    sent_at INTEGER NOT NULL
) STRICT;
CREATE INDEX message_thread ON message (thread_id) WHERE reply_to IS NOT NULL;
CREATE INDEX message_broadcast ON message (id) WHERE is_broadcast;

CREATE TABLE delivery (
    message_id INTEGER NOT NULL REFERENCES message (id) ON DELETE CASCADE,
    member_id INTEGER NOT NULL REFERENCES member (id),
    sender_id INTEGER NOT NULL,
    -- Sent before the member sat down.
    late INTEGER NOT NULL DEFAULT 0,
    handed_at INTEGER,
    handed_session INTEGER,
    n_handed INTEGER NOT NULL DEFAULT 0,
    read_at INTEGER,
    PRIMARY KEY (message_id, member_id)
) STRICT, WITHOUT ROWID;
-- Covers the one unread query, so that a count never touches the rows themselves.
CREATE INDEX delivery_unread ON delivery (member_id, message_id, handed_session, sender_id)
    WHERE read_at IS NULL;

-- The append-only log: every change of state, written in the transaction of the change.
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    message_id INTEGER,
    detail TEXT
) STRICT;
