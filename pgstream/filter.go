package pgstream

import (
	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/streamsql"
)

// Filter selects the events that a subscription takes. The zero value selects all.
type Filter struct {
	// Namespace is the only namespace; empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Topics are the only topics; empty for all.
	Topics []string `json:"topics,omitempty"`
	// Types are the only types; empty for all.
	Types []string `json:"types,omitempty"`
	// TenantID is the only tenant; zero for all.
	TenantID uuid.UUID `json:"tenantId,omitzero"`
}

// conditions are the filter as SQL on a table e, each beginning with AND, with parameters from $first on.
func (f Filter) conditions(first int) (sql string, args []any) {
	return streamsql.Filter(f).Conditions(first)
}
