-- What the service itself stores. The outbox and the inbox have migrations of their own.

-- +goose Up
CREATE TABLE files (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    upload_key text        NOT NULL UNIQUE, -- a repeated request stores nothing new
    name       text        NOT NULL,
    content    bytea       NOT NULL,
    stored_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email      text        NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- The formats that the thumbnailer can read.
CREATE TABLE decoders (format text PRIMARY KEY);
INSERT INTO decoders VALUES ('jpg'), ('png');

-- One job a file: the key makes its handler idempotent.
CREATE TABLE thumbnail_jobs (
    file_id    bigint      PRIMARY KEY REFERENCES files,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- No key: the inbox makes this handler idempotent.
CREATE TABLE welcome_mails (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES users,
    address text   NOT NULL
);

-- +goose Down
DROP TABLE welcome_mails, thumbnail_jobs, decoders, users, files;
