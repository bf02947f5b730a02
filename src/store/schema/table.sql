-- The tables of a new file. What an older file lacks of them is in the other files here, one for
-- each version.

-- One row: facts about the table itself. `epoch` is another number after each reset and in each
-- new file, so that a running server sees that its rows are gone.
CREATE TABLE about (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    reset_at INTEGER,
    -- The last ids that a reset deleted: what comes is counted on from there.
    last_message INTEGER NOT NULL DEFAULT 0,
    last_task INTEGER NOT NULL DEFAULT 0
) STRICT;

-- AUTOINCREMENT, so that an id is never another member's again.
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
    window_n INTEGER NOT NULL DEFAULT 0,
    -- The last change of the context that the member was shown.
    context_seen INTEGER NOT NULL DEFAULT 0,
    -- The last message that its poll daemon dealt with; NULL where there never was one.
    polled_to INTEGER
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
    began_at INTEGER NOT NULL,
    -- The last message that a hook announced to the session, the last that kept it from stopping,
    -- and when a hook last ran.
    announced_to INTEGER NOT NULL DEFAULT 0,
    held_to INTEGER NOT NULL DEFAULT 0,
    hook_at INTEGER
) STRICT;

-- Ids are counted on from the last row: see `about`.
CREATE TABLE message (
    id INTEGER PRIMARY KEY,
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
    sent_at INTEGER NOT NULL,
    -- The task that a notice is about.
    task_id INTEGER,
    -- Whose doing a notice tells of: an answer to it goes there.
    about_id INTEGER,
    -- The task whose notice an answer belongs to.
    answers_task INTEGER
) STRICT;
CREATE INDEX message_thread ON message (thread_id) WHERE reply_to IS NOT NULL;
CREATE INDEX message_broadcast ON message (id) WHERE is_broadcast;
CREATE INDEX message_task ON message (answers_task) WHERE answers_task IS NOT NULL;

-- One member's unread mail lies together, as the one unread query asks for it, and moves when it is
-- read: an index would be one more page to write for each message. A member has a message once, read
-- or not; the key cannot hold that, so whoever delivers or moves one sees to it. `is_read IN (0, 1)`
-- leads along the key where either will do. What is found by its message alone is looked for at each
-- member: CROSS JOIN keeps that order.
CREATE TABLE delivery (
    member_id INTEGER NOT NULL REFERENCES member (id),
    is_read INTEGER NOT NULL DEFAULT 0 CHECK (is_read = (read_at IS NOT NULL)),
    message_id INTEGER NOT NULL REFERENCES message (id),
    sender_id INTEGER NOT NULL,
    -- Sent before the member sat down.
    late INTEGER NOT NULL DEFAULT 0,
    handed_at INTEGER,
    handed_session INTEGER,
    n_handed INTEGER NOT NULL DEFAULT 0,
    read_at INTEGER,
    PRIMARY KEY (member_id, is_read, message_id)
) STRICT, WITHOUT ROWID;

-- The append-only log: every change of state, written in the transaction of the change. That a
-- message was sent, or a task created, is no row here: their own rows tell it.
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT,
    task_id INTEGER,
    -- What was done to the same task before. The task has the last: no index has to be written.
    previous INTEGER
) STRICT;

CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    -- Not IN: for a list of over two, a table is opened in memory at each change.
    status TEXT NOT NULL DEFAULT 'pending' CHECK (
        status = 'pending' OR status = 'in_progress' OR status = 'blocked' OR status = 'review'
        OR status = 'done' OR status = 'cancelled'),
    -- 0 low, 1 medium, 2 high.
    priority INTEGER NOT NULL DEFAULT 1,
    creator_id INTEGER NOT NULL REFERENCES member (id),
    -- A member. Not declared so: each page would be copied before it is changed.
    assignee_id INTEGER,
    version INTEGER NOT NULL DEFAULT 1,
    -- How many of its dependencies are not done: ready means pending and none.
    n_waits INTEGER NOT NULL DEFAULT 0,
    -- Under which name it was created, and when.
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Who set the present status, and when.
    moved_by TEXT NOT NULL,
    moved_at INTEGER NOT NULL,
    -- What was last done to it, in the log.
    last_event INTEGER,
    -- The long texts stand last, so that a list never has to read past them.
    description TEXT NOT NULL DEFAULT '',
    result TEXT NOT NULL DEFAULT ''
) STRICT;
-- The board as it is shown; it covers whoever looks for what is ready or held.
CREATE INDEX task_open ON task (priority DESC, id, status, n_waits, assignee_id)
    WHERE status NOT IN ('done', 'cancelled');
CREATE INDEX task_ended ON task (status, id) WHERE status IN ('done', 'cancelled');

CREATE TABLE task_dependency (
    task_id INTEGER NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    depends_on INTEGER NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    PRIMARY KEY (task_id, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_dependency_back ON task_dependency (depends_on);

CREATE TABLE context (
    key TEXT NOT NULL PRIMARY KEY,
    -- NULL where it was removed: the versions go on counting.
    value TEXT,
    version INTEGER NOT NULL,
    author TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Counts the changes of all keys, for "what has changed since".
    change INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX context_change ON context (change);

CREATE TABLE reservation (
    id INTEGER PRIMARY KEY,
    member_id INTEGER NOT NULL REFERENCES member (id),
    pattern TEXT NOT NULL,
    checkout TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    made_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    -- When it was released, ran out, or its holder was found gone.
    ended_at INTEGER
) STRICT;
CREATE INDEX reservation_live ON reservation (ends_at) WHERE ended_at IS NULL;

-- Who may come over the network, and as whom. A token itself is nowhere: only what it hashes to.
CREATE TABLE token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- `bearer`: a member's, until it is revoked. `web`: the human's way to the page, good for once.
    kind TEXT NOT NULL CHECK (kind = 'bearer' OR kind = 'web'),
    name TEXT NOT NULL COLLATE NOCASE,
    hash TEXT NOT NULL UNIQUE,
    made_at INTEGER NOT NULL,
    used_at INTEGER,
    -- When it was revoked, or used up.
    ended_at INTEGER
) STRICT;
