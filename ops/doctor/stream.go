package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/pgstream"
)

type streamPatient struct{ stream pgstream.Stream }

func (t streamPatient) name() string {
	if t.stream.Schema == "" {
		return "layout " + pgstream.LayoutName
	}
	return fmt.Sprintf("layout %s, schema %s", pgstream.LayoutName, t.stream.Schema)
}

func (t streamPatient) at(table string) string { return streamsql.Table(t.stream.Schema, table) }
func (t streamPatient) wakes() string          { return t.at("outbox_stream") }
func (t streamPatient) schema() string         { return t.stream.Schema }

// names writes the stream's tables into a statement.
func (t streamPatient) names(sql string) string { return streamsql.Names(t.stream.Schema, sql) }

func (t streamPatient) relations() []relation {
	return []relation{
		{name: t.at("outbox_stream"), relay: []string{"SELECT"}, emit: []string{"INSERT", "SELECT (id)"}}, // INSERT ... RETURNING id
		{name: t.at("outbox_stream"), slots: true, relay: []string{"SELECT", "TRUNCATE"}},
		{name: t.at("outbox_stream_seq"), sequence: true, relay: []string{"SELECT"}, emit: []string{"USAGE"}},
		{name: t.at("outbox_subscriptions"), relay: []string{"SELECT"}},
		{name: t.at("outbox_settings"), relay: []string{"SELECT", "UPDATE"}},
		{name: t.at("outbox_history"), relay: []string{"SELECT"}},
		{name: t.at("outbox_doubts"), relay: []string{"SELECT", "INSERT"}},
		{name: t.at("outbox_shards"), churns: true, relay: []string{"SELECT", "UPDATE"}},
		{name: t.at("outbox_relays"), churns: true, relay: []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
		{name: t.at("outbox_parked"), churns: true, relay: []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
		{name: t.at("outbox_deliveries"), churns: true, relay: []string{"INSERT"}, purge: []string{"SELECT", "DELETE"}, operate: []string{"SELECT"}},
		{name: t.at("outbox_dedupe"), churns: true, purge: []string{"SELECT", "DELETE"}, emit: []string{"SELECT", "INSERT"}, operate: []string{"SELECT"}},
	}
}

func (t streamPatient) deaf() string {
	return "relays find new events only when they poll, and prepare no statements"
}

func (t streamPatient) restored(ctx context.Context, e *exam) (string, error) {
	var pgErr *pgconn.PgError
	err := t.stream.Verify(ctx, e.tx)
	switch {
	case errors.As(err, &pgErr):
		return "", err
	case errors.Is(err, pgstream.ErrRestored):
		return "", t.addRestored(ctx, e, err)
	case err != nil:
		e.add(Note, "not looked at: relays refuse the stream before", "See the check layout.")
	}
	return "the cursors are those of this server", nil
}

// addRestored reports what a restored stream holds, as far as that can be told.
func (t streamPatient) addRestored(ctx context.Context, e *exam, refused error) error {
	seen := "relays refuse to start: " + strings.TrimPrefix(refused.Error(), "outbox: ")
	var newest *time.Time
	var written int64
	if _, err := e.tx.Exec(ctx, "SET LOCAL jit = off"); err != nil { // compiling it takes longer than running it
		return err
	}
	if err := e.tx.QueryRow(ctx, t.names(streamsql.Loaded)).Scan(&newest, &written); err != nil {
		return err
	}
	if newest != nil {
		seen += fmt.Sprintf("; the newest event that was copied in is of %s, and producers have written %s since",
			newest.UTC().Format(time.RFC3339), plural(written, "event"))
	}
	e.add(Problem, seen, fmt.Sprintf("See what would be published again: outbox repair%s --dry-run; then: outbox repair%[1]s", t.flags()))
	return nil
}

// flags returns the flags that name the stream on a command line.
func (t streamPatient) flags() string {
	if t.stream.Schema == "" {
		return ""
	}
	return " --schema " + shell(t.stream.Schema)
}
