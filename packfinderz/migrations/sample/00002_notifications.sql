-- What admins and stores are told. A notification is made of an event, by a consumer that may see
-- the event again: the unique key lets it be told once.

-- +goose Up
-- A type may be left of a table that was dropped. Whether it is the same, api migrate has found out beforehand.
-- +goose StatementBegin
DO $$ BEGIN
CREATE TYPE notification_type_enum AS ENUM ('compliance');
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$ BEGIN
CREATE TYPE notification_audience_enum AS ENUM ('admin', 'store');
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
-- +goose StatementEnd

-- store_id and license_id refer to nothing: a notification says what happened, and stays true when the
-- store is gone. event_id refers to nothing either: the outbox is purged.
CREATE TABLE notifications (
    id         uuid                       PRIMARY KEY DEFAULT gen_random_uuid(),
    event_id   uuid                       NOT NULL,
    type       notification_type_enum     NOT NULL,
    audience   notification_audience_enum NOT NULL,
    store_id   uuid                       NOT NULL,
    license_id uuid                       NOT NULL,
    status     license_status_enum        NOT NULL,
    reason     text                       NOT NULL DEFAULT '',
    message    text                       NOT NULL,
    created_at timestamptz                NOT NULL DEFAULT now(),
    CONSTRAINT notifications_once UNIQUE (event_id, audience)
);

CREATE INDEX idx_notifications_license_id ON notifications (license_id, created_at);

-- +goose Down
DROP TABLE notifications;
DROP TYPE notification_audience_enum;
DROP TYPE notification_type_enum;
