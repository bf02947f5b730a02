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
