-- A page less is written for each message: unread mail lies together by its key, in place of an index.
--
-- A break: an older server sets `read_at` alone, which the check of `is_read` refuses.

CREATE TABLE new_delivery (
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
-- Whoever deletes a message by hand, with foreign keys off, leaves its deliveries: they are nothing.
INSERT INTO new_delivery
SELECT member_id, read_at IS NOT NULL, message_id, sender_id, late, handed_at, handed_session,
       n_handed, read_at
FROM delivery WHERE message_id IN (SELECT id FROM message) ORDER BY 1, 2, 3;
DROP TABLE delivery;
ALTER TABLE new_delivery RENAME TO delivery;

-- One less for each notice of a task: its answers tell the task, and they alone are in an index.
DROP INDEX message_task;
ALTER TABLE message ADD COLUMN answers_task INTEGER;
UPDATE message
SET answers_task = (SELECT notice.task_id FROM message AS notice WHERE notice.id = message.thread_id)
WHERE reply_to IS NOT NULL;
CREATE INDEX message_task ON message (answers_task) WHERE answers_task IS NOT NULL;

-- One less for each reservation: nobody keeps its number, so that none has to be new for ever.
CREATE TABLE new_reservation (
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
INSERT INTO new_reservation
SELECT id, member_id, pattern, checkout, reason, made_at, ends_at, ended_at FROM reservation;
DROP TABLE reservation;
ALTER TABLE new_reservation RENAME TO reservation;
CREATE INDEX reservation_live ON reservation (ends_at) WHERE ended_at IS NULL;
