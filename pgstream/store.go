package pgstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgsession"
)

const (
	// DefaultSubscription is the subscription that every stream has from the start.
	DefaultSubscription = "default"
	// DefaultLease is the default of Config.Lease.
	DefaultLease = 30 * time.Second
	// DefaultMaxAttempts is the default of Config.MaxAttempts.
	DefaultMaxAttempts = 10
)

// Config adjusts a store. The zero value is ready to use.
type Config struct {
	// Subscription is the subscription to read. Default "default".
	Subscription string
	// WorkerID names this store in the shards it owns. Default: a new UUID.
	WorkerID uuid.UUID
	// Lease is how long the store owns a shard without renewing it. Default 30 s; between 100 ms and 24 h.
	Lease time.Duration
	// MaxAttempts is the number of attempts after which an event is dead, unless the event has its own. Default 10.
	MaxAttempts int
	// Connections is how many connections the store opens beside the pool: one reads, the
	// others settle. Default 4; at least 2.
	Connections int
	// MaxStopped is how many events of a topic that accepts nothing are parked, so that those of other topics can pass
	// them; beyond it the shards wait. Default 100,000.
	MaxStopped int
	// Changed is called when the subscription's definition has changed: it was altered, or dropped and made again. Batches
	// that are out were taken under the old definition. Changed must return at once, and must not call the store.
	Changed func(was, is Subscription)
	// Logger receives warnings, such as about subscriptions that lag behind the ring. Default slog.Default().
	Logger *slog.Logger
}

// Store takes the events of one subscription of a stream. It is an outbox.Store.
type Store struct {
	stream Stream
	shape  Shape
	config Config
	// definition is the subscription's, as this store has last read it.
	definition atomic.Pointer[Subscription]
	sql        *statements
	host       string
	log        *slog.Logger

	given *pgxpool.Pool   // the caller's
	pool  *pgsession.Pool // the same, for everything that is not the relay's main road
	own   *pgsession.Pool // sessions with the planner settings of the main road

	// life ends with Close, and with it the reads that nobody waits for.
	life context.Context
	end  context.CancelFunc

	// reading is held by whoever reads from the stream: there is one reader, whose position in
	// every shard is known.
	reading chan struct{}
	reader  *reader
	// timeline is that of the server when the reader was last made.
	timeline int64

	mu sync.Mutex
	// shards are those this store has, by number.
	shards map[int16]*shard
	// lost are those it had and lost while a page was out.
	lost []*shard
	// turn is the shard that was served last.
	turn int16
	// readErr is what a read that nobody waited for ended with.
	readErr error
	// When to renew the leases, to look for parked events, to look for a slot to empty, and to check
	// that the history goes on.
	tendAt, lookAt, rotateAt, checkAt time.Time
	// sureUntil is until when the leases cannot have ended.
	sureUntil time.Time
	// parked is a batch of parked events that is not out yet; draining is the one that is.
	parked, draining *parkedBatch
	// parkedLast is set when the last batch was one of parked events.
	parkedLast bool
	// exhausted are events that were found with their attempts used up, to be reported.
	exhausted []outbox.Message
	// closed are the topics that take nothing, and stopped those for which events wait here;
	// recount is set when these have to be counted again.
	closed  []string
	stopped map[string]*stoppedTopic
	recount bool
	// delivered are the latest events that were.
	delivered deliveries
	// relays is how many there were when the leases were last looked at.
	relays int
	// pageLimit bounds a page while events are large; zero for no bound.
	pageLimit int

	// parking is held from a change of the parked events until gated says the same: what is
	// known of a key must change in the order in which the table did.
	parking sync.Mutex
}

var _ outbox.Store = (*Store)(nil)

// Open opens a subscription of a stream. It first checks that the stream exists, that it has what this program needs, and
// that its server can be trusted with the cursors; see CheckSchema and ErrRestored. The store keeps to the schema in which
// Open finds the stream. Close it in the end.
func Open(ctx context.Context, pool *pgxpool.Pool, stream Stream, config Config) (*Store, error) {
	if err := stream.Validate(); err != nil {
		return nil, err
	}
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	plain := pgsession.Borrow(pool)
	if stream, err = stream.placed(ctx, plain); err != nil {
		return nil, err
	}
	if err := stream.CheckSchema(ctx, plain); err != nil {
		return nil, err
	}
	if err := stream.check(ctx, plain, config.Subscription); err != nil {
		return nil, err
	}
	if err := stream.checkCursors(ctx, plain, config.Subscription); err != nil {
		return nil, err
	}
	shape, err := stream.shape(ctx, plain)
	if err != nil {
		return nil, err
	}
	subscription, err := stream.findSubscription(ctx, plain, config.Subscription, "")
	if err != nil {
		return nil, err
	}
	own, err := ownPool(pool, config.Connections, config.Logger, func(ctx context.Context, conn *pgx.Conn) error {
		return stream.check(ctx, conn, config.Subscription)
	})
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // only for people
	life, end := context.WithCancel(context.Background())
	store := &Store{
		life: life, end: end, stream: stream, shape: shape, config: config, sql: stream.statements(shape, subscription.Filter),
		host: host, log: config.Logger, given: pool, pool: plain, own: own,
		reading: make(chan struct{}, 1), shards: make(map[int16]*shard),
		stopped: make(map[string]*stoppedTopic), recount: true,
		delivered: deliveries{since: time.Now()},
	}
	store.definition.Store(subscription)
	return store, nil
}

// withDefaults fills in what is zero and refuses what cannot work.
func (config Config) withDefaults() (Config, error) {
	config.Subscription = cmp.Or(config.Subscription, DefaultSubscription)
	config.WorkerID = cmp.Or(config.WorkerID, uuid.New())
	config.Lease = cmp.Or(config.Lease, DefaultLease)
	config.MaxAttempts = cmp.Or(config.MaxAttempts, DefaultMaxAttempts)
	config.MaxStopped = cmp.Or(config.MaxStopped, DefaultMaxStopped)
	config.Connections = cmp.Or(config.Connections, 4)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	if config.Lease < 100*time.Millisecond || config.Lease > 24*time.Hour {
		return config, fmt.Errorf("outbox: the lease is %s; it must be between 100ms and 24h", config.Lease)
	}
	if config.MaxAttempts < 1 || config.MaxAttempts > math.MaxInt32 {
		return config, fmt.Errorf("outbox: the maximum of attempts is %d; it must be between 1 and %d", config.MaxAttempts, math.MaxInt32)
	}
	if config.MaxStopped < 0 {
		return config, errors.New("outbox: the maximum of stopped events is negative")
	}
	if config.Connections < 2 {
		return config, fmt.Errorf("outbox: the stream has %d connections; it needs 2: one reads, one settles", config.Connections)
	}
	return config, nil
}

// Close leaves the shards to others and closes the store's own connections. It waits for a
// claim that is under way.
func (s *Store) Close() {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = s.Leave(ctx) // the leases end by themselves
	s.own.Close()
}

// Check returns an error, such as ErrRestored, if the subscription cannot be read now.
func (s *Store) Check(ctx context.Context) error {
	return s.stream.check(ctx, s.pool, s.config.Subscription)
}

// WorkerID is the name of this store in the shards it owns.
func (s *Store) WorkerID() uuid.UUID { return s.config.WorkerID }

// Traits tells the relay what to expect.
func (s *Store) Traits() outbox.Traits {
	return outbox.Traits{
		Name: LayoutName + "/" + s.config.Subscription, Lease: s.config.Lease, Backoff: true, InOrder: true, Exclusive: true,
	}
}

// errClosed is the answer of a store that was closed.
var errClosed = errors.New("outbox: the store is closed")
