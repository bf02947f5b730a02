-- One page less for each message: unread mail lies together by its key, in place of an index.
--
-- A break: an older server would not move what it marks as read, nor know what is unread.

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
INSERT INTO new_delivery
SELECT member_id, read_at IS NOT NULL, message_id, sender_id, late, handed_at, handed_session,
       n_handed, read_at
FROM delivery WHERE message_id IN (SELECT id FROM message) ORDER BY 1, 2, 3;
DROP TABLE delivery;
ALTER TABLE new_delivery RENAME TO delivery;
