// Package pginbox makes a consumer whose effect is in PostgreSQL handle each event exactly once. The mark "handled"
// is a row written in the effect's own transaction, so that both are committed or neither is.
//
// Handle and HandleSQL begin a transaction, mark the event, run the handler in it and commit. Mark and MarkSQL mark
// it in the caller's own transaction.
//
// A consumer that finds an event marked by an open transaction waits for the end of that transaction. This keeps
// two consumers of one event apart. To limit the wait, or the time a hanging consumer may keep its transaction
// open, set lock_timeout and idle_in_transaction_session_timeout on the connections; a wait that lock_timeout ends
// is inbox.ErrInProgress.
//
// All of this holds at READ COMMITTED, PostgreSQL's default. Above it the server answers a race with a
// serialization failure (40001), which is returned: have the event delivered again.
package pginbox

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/internal/sqlstate"
)

// DefaultTable is the default of Config.Table.
const DefaultTable = "outbox_inbox"

// Config says where the table is, and how long its rows are needed.
type Config struct {
	// Schema is where the table is; empty for the search path.
	Schema string
	// Table is its name. Default outbox_inbox.
	Table string
	// Horizon is how long after its first delivery the broker may deliver an event again. If it is set, a purge
	// refuses to delete younger rows.
	Horizon time.Duration
}

// Validate rejects names that PostgreSQL cannot have, and a negative horizon.
func (c Config) Validate() error {
	for _, part := range [][2]string{{"schema", c.Schema}, {"table", c.Table}} {
		if problem := sqlname.Problem(part[1]); problem != "" && part[1] != "" {
			return fmt.Errorf("inbox: the %s's name %s", part[0], problem)
		}
	}
	if c.Horizon < 0 {
		return fmt.Errorf("inbox: the redelivery horizon is %s", c.Horizon)
	}
	return nil
}

func (c Config) table() string { return cmp.Or(c.Table, DefaultTable) }

//go:embed migrations/*.sql
var files embed.FS

// Migrations returns the goose migrations of the table, with the name in config. They run in the first schema of
// the search path.
func Migrations(config Config) (fs.FS, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return migrations.Rename(files, map[string]string{DefaultTable: config.table()})
}

// Inbox remembers in one table which events each consumer has handled. It holds no connection and is safe for
// concurrent use.
type Inbox struct {
	config Config
	mark   string
	purge  string
}

// New returns an inbox. It does not connect.
func New(config Config) (*Inbox, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	table := sqlname.Qualified(config.Schema, config.table())
	return &Inbox{config: config, mark: fmt.Sprintf(markSQL, table), purge: fmt.Sprintf(purgeSQL, table)}, nil
}

// markSQL waits for an open transaction that has marked the same event. If that one rolls back, this one marks.
const markSQL = `INSERT INTO %s (consumer, event_id) VALUES ($1::text, $2::uuid) ON CONFLICT (consumer, event_id) DO NOTHING`

// marked interprets the result of markSQL.
func marked(rows int64, err error, consumer string, event uuid.UUID) (first bool, _ error) {
	if err == nil {
		return rows == 1, nil
	}
	err = fmt.Errorf("inbox: mark event %s for %s: %w", event, consumer, err)
	if sqlstate.Of(err) == sqlstate.LockNotAvailable {
		return false, errors.Join(inbox.ErrInProgress, err)
	}
	return false, err
}
