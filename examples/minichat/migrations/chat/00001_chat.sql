-- The chat's own tables. Its outbox is beside them.

-- +goose Up
CREATE TABLE chat_quotas (
    tenant_id uuid   PRIMARY KEY,
    tokens    bigint NOT NULL,
    reserved  bigint NOT NULL DEFAULT 0,
    used      bigint NOT NULL DEFAULT 0
);

CREATE TABLE chat_turns (
    tenant_id  uuid   NOT NULL REFERENCES chat_quotas,
    turn_id    uuid   NOT NULL,
    request_id uuid   NOT NULL,
    prompt     text   NOT NULL,
    reserved   bigint NOT NULL,
    outcome    text   NULL,
    tokens     bigint NULL,
    PRIMARY KEY (tenant_id, turn_id, request_id)
);

-- +goose Down
DROP TABLE chat_turns, chat_quotas;
