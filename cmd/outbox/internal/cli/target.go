package cli

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/admin"
	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// target is what --layout names: a queue table, or the stream. The commands do not ask which;
// what one of them cannot do, it refuses itself.
type target interface {
	outboxpgx.Target
	// migration says how its tables are made.
	migration(ctx context.Context, conn *pgx.ConnConfig, options migrationOptions) (migrate.Config, error)
	// files are its goose migrations.
	files(options migrationOptions) (fs.FS, error)
	// schema is where its tables are; empty for the search path.
	schema() string
	// ifMade is what to do with tables that somebody else's migrations made.
	ifMade() string
	// open connects, and checks that the tables are there and are what the target says.
	open(ctx context.Context, conn *pgx.ConnConfig, options storeOptions) (*opened, error)
	// stats are how its events are doing: one report for a table, one for each subscription of
	// a stream, or for the one that is named.
	stats(ctx context.Context, conn *pgx.ConnConfig, subscription string) ([]report, error)
	// console is what a console shows: a table, every subscription of a stream, or the one that is
	// named.
	console(ctx context.Context, pool *pgxpool.Pool, subscription string) ([]admin.Target, error)
	// patient is what doctor examines.
	patient() (doctor.Target, error)
	// operations are what a person can do with it; of a subscription, if it is a stream.
	operations(ctx context.Context, pool *pgxpool.Pool, subscription string) (ops.Target, error)
	// verify compares what is there with what this program needs; emits is set for a command that
	// writes events.
	verify(ctx context.Context, db reader, emits bool) error
	// wake tells relays that there is something to do.
	wake(ctx context.Context, db execer) error
	// ifMissing is the hint for a database that lacks the tables.
	ifMissing() string
}

// reader is a connection or a pool.
type reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// execer is a connection or a pool.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// migrationOptions are the flags of migrate.
type migrationOptions struct {
	adopt, force bool
	// audit is set where the audit log's tables are meant, not the target's own.
	audit bool
	// shape is that of a stream; what is zero was not given.
	shape pgstream.Shape
}

// storeOptions are what the commands ask of a store. Zero means the default.
type storeOptions struct {
	subscription string
	filter       pgstore.Filter
	lease        time.Duration
	attempts     int
	concurrency  int
	// purgesDead is set where dead events have a retention.
	purgesDead bool
	// changed is told when the definition of a subscription changes; nil for nobody.
	changed func(was, is pgstream.Subscription)
	log     *slog.Logger
}

// store is what the commands use of either kind.
type store interface {
	outbox.Store
	WorkerID() uuid.UUID
}

// opened is a store with what belongs to it.
type opened struct {
	target target
	store  store
	pool   *pgxpool.Pool
	// destination is where its subscription says that its events go; often nowhere.
	destination string
	// parked counts the events that a stream's subscription has put aside, by state; nil for a table.
	parked func(context.Context) (map[string]int64, error)
}

// name says where the events come from, without a password.
func (o *opened) name() string {
	config := o.pool.Config().ConnConfig
	return fmt.Sprintf("%s at %s/%s", o.store.Traits().Name, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.Database)
}

// close gives back what the store holds.
func (o *opened) close() {
	if closer, ok := o.store.(interface{ Close() }); ok {
		closer.Close()
	}
	o.pool.Close()
}

// locate finds what the flags name, and its server.
func (s *source) locate() (target, *pgx.ConnConfig, error) {
	found, err := s.resolve()
	if err != nil {
		return nil, nil, err
	}
	conn, err := s.config()
	return found, conn, err
}

// open connects to what the flags name.
func (s *source) open(ctx context.Context, options storeOptions) (*opened, error) {
	found, conn, err := s.locate()
	if err != nil {
		return nil, err
	}
	from, err := found.open(ctx, conn, options)
	if err != nil {
		return nil, err
	}
	from.target = found
	return from, nil
}
