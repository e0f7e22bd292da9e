-- Billing's own tables, in its own database.

-- +goose Up
CREATE TABLE billing_accounts (
    tenant_id uuid   PRIMARY KEY,
    turns     bigint NOT NULL,
    tokens    bigint NOT NULL
);

CREATE TABLE billing_usage (
    tenant_id  uuid   NOT NULL,
    turn_id    uuid   NOT NULL,
    request_id uuid   NOT NULL,
    outcome    text   NOT NULL,
    tokens     bigint NOT NULL,
    PRIMARY KEY (tenant_id, turn_id, request_id)
);

-- +goose Down
DROP TABLE billing_usage, billing_accounts;
