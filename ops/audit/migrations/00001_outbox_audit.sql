-- Who did what to the events, and to which. A row is written with the change it tells of, in
-- one transaction.

-- +goose Up
CREATE TABLE outbox_audit (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    actor      text        NOT NULL,
    operation  text        NOT NULL,
    target     text        NOT NULL,
    request    jsonb       NOT NULL,
    events     bigint      NOT NULL DEFAULT 0,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz NULL,
    outcome    text        NOT NULL DEFAULT 'running'
);
CREATE INDEX outbox_audit_target ON outbox_audit (target, id);

CREATE TABLE outbox_audit_events (
    event_id uuid        NOT NULL,
    audit_id bigint      NOT NULL REFERENCES outbox_audit (id) ON DELETE CASCADE,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (event_id, audit_id)
);
CREATE INDEX outbox_audit_events_audit ON outbox_audit_events (audit_id);

-- +goose Down
DROP TABLE outbox_audit_events, outbox_audit;
