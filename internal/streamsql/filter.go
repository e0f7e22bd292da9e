package streamsql

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Filter is a pgstream.Filter.
type Filter struct {
	Namespace     string
	Topics, Types []string
	TenantID      uuid.UUID
}

// Conditions are the filter as SQL on a table e, each beginning with AND, with parameters from $first on.
func (f Filter) Conditions(first int) (sql string, args []any) {
	var b strings.Builder
	add := func(condition string, value any) {
		fmt.Fprintf(&b, "\n    AND e."+condition, first+len(args))
		args = append(args, value)
	}
	if f.Namespace != "" {
		add("namespace = $%d::text", f.Namespace)
	}
	if len(f.Topics) > 0 {
		add("topic = ANY($%d::text[])", f.Topics)
	}
	if len(f.Types) > 0 {
		add("type = ANY($%d::text[])", f.Types)
	}
	if f.TenantID != uuid.Nil {
		add("tenant_id = $%d::uuid", [16]byte(f.TenantID))
	}
	return b.String(), args
}
