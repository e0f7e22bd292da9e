package pgstore

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlplan"
)

// PlanStatement is a compiled statement, shown to the tests of plans.
type PlanStatement struct {
	SQL       string
	Constants []any
}

// PlanStatements are the statements of a store by name; those it has not are missing.
func PlanStatements(s *Store) map[string]PlanStatement {
	list := make(map[string]PlanStatement)
	for name, statement := range map[string]*statement{
		"claimDue": s.sql.claimDue.all, "claimDueFrom": s.sql.claimDueFrom.all, "claimExpired": s.sql.claimExpired.all,
		"claimDue but for some": s.sql.claimDue.some, "claimDueFrom but for some": s.sql.claimDueFrom.some,
		"claimExpired but for some": s.sql.claimExpired.some,
		"dead":                      s.sql.dead, "waiting": {sql: s.layout.Waiting(s.config.Lease)}, "renew": s.sql.renew, "sweep": s.sql.sweep, "purge": s.sql.purge, "unknown": s.sql.unknown,
		"push":       s.sql.push,
		"far leases": s.sql.farLeases, "end leases": s.sql.endLeases,
		"delivered by locks": s.sql.locked.delivered, "failed by locks": s.sql.locked.failed, "died by locks": s.sql.locked.died,
		"delivered by ctid": s.sql.byCtid.delivered, "delivered by id": s.sql.byID.delivered,
		"failed by ctid": s.sql.byCtid.failed, "failed by id": s.sql.byID.failed,
		"died by ctid": s.sql.byCtid.died, "died by id": s.sql.byID.died,
		"released by ctid": s.sql.byCtid.released, "released by id": s.sql.byID.released,
	} {
		if statement != nil {
			list[name] = PlanStatement{statement.sql, statement.constants}
		}
	}
	return list
}

// PlanHold is where a claimed row stands, and what proves that it is held.
type PlanHold struct {
	ID   [16]byte
	TID  pgtype.TID
	Mark pgtype.Timestamptz
}

// PlanHolds are the rows of a batch.
func PlanHolds(b outbox.Batch) []PlanHold {
	own, ok := b.(*batch)
	if !ok {
		return nil
	}
	list := make([]PlanHold, len(own.holds))
	for i, h := range own.holds {
		list[i] = PlanHold{own.messages[i].ID, h.tid, h.mark}
	}
	return list
}

// PlanWatermark is where the store's next scan begins.
func PlanWatermark(s *Store) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watermark
}

// PlanBegin is what a claim's transaction begins with, while there is work.
func PlanBegin(s *Store) string {
	if !s.layout.Locks() {
		return "BEGIN; " + sqlplan.ByIndex
	}
	return strings.Join(s.begin, "; ")
}
