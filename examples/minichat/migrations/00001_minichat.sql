-- The chat's own tables, and those of the billing downstream, which could be anywhere else.

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

CREATE TABLE billing_accounts (
    tenant_id uuid   PRIMARY KEY,
    turns     bigint NOT NULL DEFAULT 0,
    tokens    bigint NOT NULL DEFAULT 0
);

CREATE TABLE billing_usage (
    tenant_id  uuid   NOT NULL REFERENCES billing_accounts,
    turn_id    uuid   NOT NULL,
    request_id uuid   NOT NULL,
    outcome    text   NOT NULL,
    tokens     bigint NOT NULL,
    PRIMARY KEY (tenant_id, turn_id, request_id)
);

-- +goose Down
DROP TABLE billing_usage, billing_accounts, chat_turns, chat_quotas;
