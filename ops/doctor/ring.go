package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/internal/streamsql"
)

// retention looks for slots that were not emptied before they were written again, and for old rows beside the log.
func (t streamPatient) retention(ctx context.Context, e *exam) (string, error) {
	if _, err := e.tx.Exec(ctx, sqlplan.ByIndex); err != nil {
		return "", err
	}
	var slots int
	var length, deliveries, dedupe float64
	if err := e.tx.QueryRow(ctx, t.names(streamsql.Ring)).Scan(&slots, &length, &deliveries, &dedupe); err != nil {
		return "", err
	}
	rows, _ := e.tx.Query(ctx, streamsql.SlotAges(t.stream.Schema, slots)) // the rows say what failed
	ages := make([]time.Duration, slots)
	var slot int
	var age *float64
	_, err := pgx.ForEachRow(rows, []any{&slot, &age}, func() error {
		if age != nil { // it is not empty
			ages[slot] = seconds(*age)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	turn := seconds(float64(slots) * length)
	for slot, age := range ages {
		if age > turn {
			if err := t.late(ctx, e, slot, age, turn); err != nil {
				return "", err
			}
		}
	}
	for _, beside := range []struct {
		what string
		age  time.Duration
	}{{"deliveries", seconds(deliveries)}, {"dedupe keys", seconds(dedupe)}} {
		if beside.age > e.config.Retention {
			e.add(Warning, fmt.Sprintf("the oldest %s are %s old, more than %s", beside.what, span(beside.age), span(e.config.Retention)),
				fmt.Sprintf("Run the relay with --retention %s, or: outbox purge%s --retention %[1]s", short(e.config.Retention), t.flags()))
		}
	}
	return "every slot was emptied in its turn", nil
}

// late reports a slot that kept its events for another turn, and who has not settled them.
func (t streamPatient) late(ctx context.Context, e *exam, slot int, age, turn time.Duration) error {
	sql := strings.ReplaceAll(t.names(streamsql.SlotReaders), "{slot}", streamsql.Slot(t.stream.Schema, slot))
	rows, _ := e.tx.Query(ctx, sql) // the rows say what failed
	behind, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	seen := fmt.Sprintf("slot %d was not emptied in its turn: its oldest event is %s old, and the ring turns in %s", slot, span(age), span(turn))
	if len(behind) == 0 {
		e.add(Warning, seen+"; every subscription has settled it, and no relay was there to empty it",
			"Run a relay, or: outbox purge"+t.flags()+" --retention "+short(turn))
		return nil
	}
	e.add(Warning, seen+"; not settled by "+strings.Join(behind, ", "),
		fmt.Sprintf("Nothing is lost, but the table grows. Run a relay for %s, or drop it, with the events that it has not delivered: outbox subscriptions drop%s --force NAME",
			strings.Join(behind, " and "), t.flags()))
	return nil
}
