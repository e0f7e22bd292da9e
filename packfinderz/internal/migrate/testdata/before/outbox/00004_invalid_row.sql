-- A row that cannot be read as an event is dead with a reason of its own.

-- +goose Up
ALTER TYPE outbox_dlq_reason_enum ADD VALUE IF NOT EXISTS 'invalid_row';

-- +goose Down
-- An enum keeps its values, and rows that have this one keep it.
