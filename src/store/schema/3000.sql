-- Fewer pages for each message and each change of a task. Messages and tasks are lines in the log by
-- themselves, and no row there repeats them; and what was done to a task is a chain, from the last
-- backwards, in place of an index.
--
-- A break: the log of an older server would lack lines, and a task's history rows. Foreign keys are
-- off here, since dropping a table would empty those that refer to it.

ALTER TABLE event DROP COLUMN message_id;
ALTER TABLE event ADD COLUMN previous INTEGER;
UPDATE event SET previous = (SELECT max(older.id) FROM event AS older
                             WHERE older.task_id = event.task_id AND older.id < event.id
                               AND older.kind <> 'message.sent' AND older.kind <> 'task.created')
WHERE task_id IS NOT NULL;

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
INSERT INTO new_task
SELECT id, title, status, priority, creator_id, assignee_id, version, n_waits,
       coalesce((SELECT actor FROM event WHERE task_id = task.id AND kind = 'task.created'),
                (SELECT name FROM member WHERE id = creator_id)),
       created_at, updated_at, moved_by, moved_at,
       (SELECT max(id) FROM event
        WHERE task_id = task.id AND kind <> 'message.sent' AND kind <> 'task.created'),
       description, result
FROM task;
DROP TABLE task;
ALTER TABLE new_task RENAME TO task;
CREATE INDEX task_open ON task (priority DESC, id, status, n_waits, assignee_id)
    WHERE status NOT IN ('done', 'cancelled');
CREATE INDEX task_ended ON task (status, id) WHERE status IN ('done', 'cancelled');
DROP INDEX event_task;
DELETE FROM event WHERE kind = 'message.sent' OR kind = 'task.created';
