package main

import (
	"fmt"

	"github.com/google/uuid"
)

// What the chat and billing agree on: where usage is published, and what it says.

// The module's place in the shared table, the topic of its messages, and that of those which
// billing cannot read.
const (
	namespace = "mini-chat"
	topic     = "usage"
	deadTopic = "usage-dead"
)

// turn names one answer to one request. It is also what makes its usage one: the message's
// dedupe key, and the key of what billing has counted.
type turn struct {
	Tenant  uuid.UUID `json:"tenant"`
	Turn    uuid.UUID `json:"turn"`
	Request uuid.UUID `json:"request"`
}

func (t turn) dedupeKey() string { return fmt.Sprintf("%s/%s/%s", t.Tenant, t.Turn, t.Request) }

// usage is what a finalised turn used, and the payload of its message: all that billing needs.
type usage struct {
	turn
	Outcome string `json:"outcome"`
	Tokens  int64  `json:"tokens"`
}
