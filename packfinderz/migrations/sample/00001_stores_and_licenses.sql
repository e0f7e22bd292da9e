-- Stores and their licences: what compliance is about. Ids come from the client, so that a request
-- that is sent again finds what the first one made.

-- +goose Up
-- A type may be left of a table that was dropped. Whether it is the same, api migrate has found out beforehand.
-- +goose StatementBegin
DO $$ BEGIN
CREATE TYPE license_status_enum AS ENUM ('pending', 'verified', 'rejected');
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
-- +goose StatementEnd

CREATE TABLE stores (
    id         uuid        PRIMARY KEY,
    name       text        NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE licenses (
    id         uuid                PRIMARY KEY,
    store_id   uuid                NOT NULL REFERENCES stores (id),
    number     text                NOT NULL CHECK (number <> ''),
    status     license_status_enum NOT NULL DEFAULT 'pending',
    reason     text                NOT NULL DEFAULT '',
    created_at timestamptz         NOT NULL DEFAULT now(),
    updated_at timestamptz         NOT NULL DEFAULT now(),
    CONSTRAINT licenses_reason_of_a_rejection CHECK ((status = 'rejected') = (reason <> ''))
);

CREATE INDEX idx_licenses_store_id ON licenses (store_id);

-- +goose Down
DROP TABLE licenses;
DROP TABLE stores;
DROP TYPE license_status_enum;
