-- The task board, the shared context, file reservations. Only additions: servers of the version
-- before go on beside this one.

CREATE TABLE task (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending' CHECK (
        status IN ('pending', 'in_progress', 'blocked', 'review', 'done', 'cancelled')),
    -- 0 low, 1 medium, 2 high.
    priority INTEGER NOT NULL DEFAULT 1,
    creator_id INTEGER NOT NULL REFERENCES member (id),
    assignee_id INTEGER REFERENCES member (id),
    version INTEGER NOT NULL DEFAULT 1,
    -- How many of its dependencies are not done: ready means pending and none.
    n_waits INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Who set the present status, and when.
    moved_by TEXT NOT NULL,
    moved_at INTEGER NOT NULL,
    -- The long texts stand last, so that a list never has to read past them.
    description TEXT NOT NULL DEFAULT '',
    result TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX task_open ON task (priority DESC, id)
    WHERE status NOT IN ('done', 'cancelled');
CREATE INDEX task_ready ON task (priority DESC, id) WHERE status = 'pending' AND n_waits = 0;
CREATE INDEX task_status ON task (status);
CREATE INDEX task_assignee ON task (assignee_id) WHERE status NOT IN ('done', 'cancelled');

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
    id INTEGER PRIMARY KEY AUTOINCREMENT,
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

-- What a row of the log, or a notice, is about.
ALTER TABLE event ADD COLUMN task_id INTEGER;
CREATE INDEX event_task ON event (task_id) WHERE task_id IS NOT NULL;
ALTER TABLE message ADD COLUMN task_id INTEGER;
CREATE INDEX message_task ON message (task_id) WHERE task_id IS NOT NULL;
-- Whose doing a notice tells of: an answer to it goes there.
ALTER TABLE message ADD COLUMN about_id INTEGER;

-- The last change of the context that the member was shown.
ALTER TABLE member ADD COLUMN context_seen INTEGER NOT NULL DEFAULT 0;
