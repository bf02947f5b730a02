-- Fewer pages for each change. The ids of messages and tasks are counted on from the last row, not
-- by AUTOINCREMENT, which writes a row of its own each time; what a reset deletes is counted in
-- `about`, so that an id is still never another thing's again. And the board has two indexes in
-- place of four.
--
-- A break: what older servers insert would begin the wrong thread. Foreign keys are off here, since
-- dropping a table would empty those that refer to it.

ALTER TABLE about ADD COLUMN last_message INTEGER NOT NULL DEFAULT 0;
ALTER TABLE about ADD COLUMN last_task INTEGER NOT NULL DEFAULT 0;
UPDATE about SET
    last_message = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0),
    last_task = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'task'), 0);

-- The last message that a hook announced to the session, the last that kept it from stopping, and
-- when a hook last ran; the last message that a member's poll daemon dealt with.
ALTER TABLE session ADD COLUMN announced_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN held_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN hook_at INTEGER;
ALTER TABLE member ADD COLUMN polled_to INTEGER;

CREATE TABLE new_message (
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
    about_id INTEGER
) STRICT;
INSERT INTO new_message
SELECT id, sender_id, kind, audience, is_broadcast, recipient_id, reply_to, thread_id, body, sent_at,
       task_id, about_id
FROM message;
DROP TABLE message;
ALTER TABLE new_message RENAME TO message;
CREATE INDEX message_thread ON message (thread_id) WHERE reply_to IS NOT NULL;
CREATE INDEX message_broadcast ON message (id) WHERE is_broadcast;
CREATE INDEX message_task ON message (task_id) WHERE task_id IS NOT NULL;

CREATE TABLE new_task (
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
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Who set the present status, and when.
    moved_by TEXT NOT NULL,
    moved_at INTEGER NOT NULL,
    -- The long texts stand last, so that a list never has to read past them.
    description TEXT NOT NULL DEFAULT '',
    result TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO new_task
SELECT id, title, status, priority, creator_id, assignee_id, version, n_waits, created_at, updated_at,
       moved_by, moved_at, description, result
FROM task;
DROP TABLE task;
ALTER TABLE new_task RENAME TO task;
-- The board as it is shown; it covers whoever looks for what is ready or held.
CREATE INDEX task_open ON task (priority DESC, id, status, n_waits, assignee_id)
    WHERE status NOT IN ('done', 'cancelled');
CREATE INDEX task_ended ON task (status, id) WHERE status IN ('done', 'cancelled');

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
