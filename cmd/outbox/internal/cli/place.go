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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// place is what --layout, --schema and --table name: a queue table, or the stream. It knows what is needed before
// there are tables, and opens the store of a relay and the outbox of a person. The commands do not ask which it is.
type place interface {
	// target is what events are emitted to.
	target() outbox.Target
	// migration returns how to create its tables.
	migration(ctx context.Context, conn *pgx.ConnConfig, options migrationOptions) (migrate.Config, error)
	// files are its goose migrations.
	files(options migrationOptions) (fs.FS, error)
	// schema is the schema of its tables; empty for the search path.
	schema() string
	// ifMade says what to do with tables that other migrations created.
	ifMade() string
	// ifMissing is the hint for a database that lacks the tables.
	ifMissing() string
	// verify compares the tables with what this program needs; emits is set for a command that writes events.
	verify(ctx context.Context, conn *pgx.Conn, emits bool) error
	// wake tells relays that there are events.
	wake(ctx context.Context, conn *pgx.Conn) error
	// open opens a relay's store, and checks that the tables are what the place says.
	open(ctx context.Context, conn *pgx.ConnConfig, options storeOptions) (*opened, error)
	// outbox is the table, or a subscription of the stream; empty is the default subscription.
	outbox(pool *pgxpool.Pool, subscription string) (*ops.Outbox, error)
	// subscriptions returns the names that outbox accepts; a table has one, without a name.
	subscriptions(ctx context.Context, pool *pgxpool.Pool) ([]string, error)
}

type migrationOptions struct {
	adopt, force bool
	// audit is set for the audit log's tables instead of the place's own.
	audit bool
	// shape is the shape of a stream; zero fields were not given.
	shape pgstream.Shape
}

// storeOptions are the commands' settings for a store. Zero means the default.
type storeOptions struct {
	subscription string
	filter       pgstore.Filter
	lease        time.Duration
	attempts     int
	concurrency  int
	// purgesDead is set if dead events have a retention.
	purgesDead bool
	// changed, if not nil, is called when the definition of a subscription changes.
	changed func(was, is pgstream.Subscription)
	log     *slog.Logger
}

// store is what the commands need of either kind.
type store interface {
	outbox.Store
	WorkerID() uuid.UUID
}

// opened is a store with what belongs to it.
type opened struct {
	store store
	pool  *pgxpool.Pool
	// destination is the subscription's own destination; often empty.
	destination string
	// parked counts the parked events of a stream's subscription by state; nil for a table.
	parked func(context.Context) (map[string]int64, error)
}

// name says where the events come from, without a password.
func (o *opened) name() string {
	config := o.pool.Config().ConnConfig
	return fmt.Sprintf("%s at %s/%s", o.store.Traits().Name, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.Database)
}

// close releases what the store holds.
func (o *opened) close() {
	if closer, ok := o.store.(interface{ Close() }); ok {
		closer.Close()
	}
	o.pool.Close()
}

// locate finds what the flags name, and its server.
func (s *source) locate() (place, *pgx.ConnConfig, error) {
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
	return found.open(ctx, conn, options)
}

// connected runs work on what the flags name, with a pool of so many connections.
func (s *source) connected(ctx context.Context, connections int, work func(place, *pgxpool.Pool) error) error {
	found, conn, err := s.locate()
	if err != nil {
		return err
	}
	pool, err := connectPool(ctx, conn, connections)
	if err != nil {
		return err
	}
	defer pool.Close()
	return classify(work(found, pool), found.ifMissing())
}

// outboxes returns the outbox of a subscription or, if none is named, of each. It checks that they exist and are
// what this program needs.
func outboxes(ctx context.Context, found place, pool *pgxpool.Pool, subscription string) ([]*ops.Outbox, error) {
	names := []string{subscription}
	if subscription == "" {
		var err error
		if names, err = found.subscriptions(ctx, pool); err != nil {
			return nil, err
		}
	}
	list := make([]*ops.Outbox, len(names))
	for i, name := range names {
		var err error
		if list[i], err = found.outbox(pool, name); err != nil {
			return nil, err
		}
		if err := list[i].Verify(ctx); err != nil {
			return nil, err
		}
	}
	return list, nil
}
