package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/logtest"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// bed is a publisher between a real database and a Pub/Sub service of its own.
type bed struct {
	*testing.T
	url    string
	pool   *pgxpool.Pool
	db     *gorm.DB
	events *outbox.Service
	broker *pubsubtest.Broker
	// env is what the publisher sees beside its addresses.
	env    map[string]string
	listen string
	log    *lines
}

func newBed(t *testing.T, reactors ...pstest.ServerReactorOption) *bed {
	t.Helper()
	url, pool := backendtest.Database(t)
	return newBedOn(t, url, pool, reactors...)
}

func newBedOn(t *testing.T, url string, pool *pgxpool.Pool, reactors ...pstest.ServerReactorOption) *bed {
	t.Helper()
	b := &bed{T: t, url: url, pool: pool, db: pftest.GORM(t, pool), broker: pubsubtest.New(t, reactors...), log: &lines{}}
	var err error
	if b.events, err = outbox.NewService(outbox.Config{}); err != nil {
		t.Fatal(err)
	}
	for _, topic := range registry.DefaultTopics().Names() {
		b.broker.CreateTopic(t, topic)
	}
	b.listen = backendtest.Address(t)
	b.env = map[string]string{"PACKFINDERZ_OUTBOX_PUBLISH_POLL_MS": "20"}
	return b
}

func (b *bed) lookup(name string) (string, bool) {
	if value, ok := b.env[name]; ok {
		return value, true
	}
	value, ok := map[string]string{
		"PACKFINDERZ_DATABASE_URL": b.url, "PACKFINDERZ_PUBSUB_PROJECT": pubsubtest.Project,
		"PUBSUB_EMULATOR_HOST": b.broker.Endpoint(), "PACKFINDERZ_PUBLISHER_LISTEN": b.listen,
	}[name]
	return value, ok
}

// run runs the program with its arguments to the end of ctx.
func (b *bed) run(ctx context.Context, args ...string) error {
	return run(ctx, args, b.lookup, slog.New(slog.NewJSONHandler(b.log, nil)))
}

// start runs the publisher until the returned function is called, or to the end of the test.
func (b *bed) start() (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	done := make(chan error, 1)
	go func() { done <- b.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(stop)
	return stop
}

// emit emits events in one transaction, and gives their ids.
func (b *bed) emit(list ...payloads.Payload) []uuid.UUID {
	b.Helper()
	ids := make([]uuid.UUID, len(list))
	err := b.db.Transaction(func(tx *gorm.DB) error {
		for i, payload := range list {
			emitted, err := b.events.Emit(tx, outbox.DomainEvent{AggregateID: pftest.AggregateOf(payload), Data: payload})
			if err != nil {
				return err
			}
			ids[i] = emitted.ID
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return ids
}

// emitMany emits n events of one type.
func (b *bed) emitMany(n int) []uuid.UUID {
	b.Helper()
	list := make([]payloads.Payload, n)
	for i := range list {
		list[i] = payloads.OrderStateChanged{VendorOrderID: uuid.New(), From: "pending", To: "accepted"}
	}
	return b.emit(list...)
}

// rowID stands for the row's own id in a payload that is inserted.
const rowID = "the id of the row"

// insert writes a row past every check, as another program might.
func (b *bed) insert(eventType, aggregateType string, payload []byte) uuid.UUID {
	b.Helper()
	id := uuid.New()
	b.insertRow(id, eventType, aggregateType, uuid.New(), payload)
	return id
}

func (b *bed) insertRow(id uuid.UUID, eventType, aggregateType string, aggregate uuid.UUID, payload []byte) {
	b.Helper()
	payload = bytes.ReplaceAll(payload, []byte(rowID), []byte(id.String()))
	testdb.Exec(b, b.pool, `INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES ($1, $2::text::event_type_enum, $3::text::aggregate_type_enum, $4, $5)`, id, eventType, aggregateType, aggregate, payload)
}

// number is the one number that a query answers.
func (b *bed) number(query string, args ...any) int {
	b.Helper()
	return backendtest.Count(b, b.pool, query, args...)
}

// await waits until nothing waits any more: every row is published or dead.
func (b *bed) await() {
	b.Helper()
	await.Until(b, "everything to be published or dead", func() bool {
		return b.number(`SELECT count(*) FROM outbox_events e WHERE published_at IS NULL
			AND NOT EXISTS (SELECT FROM outbox_dlq d WHERE d.event_id = e.id AND d.retried_at IS NULL)`) == 0
	})
}

// messages are those that Pub/Sub has taken, by the event's id.
func (b *bed) messages() map[uuid.UUID][]*pstest.Message {
	b.Helper()
	messages := make(map[uuid.UUID][]*pstest.Message)
	for _, message := range b.broker.Server.Messages() {
		id, err := uuid.Parse(message.Attributes["event_id"])
		if err != nil {
			b.Fatalf("a message without an event id: %v", message.Attributes)
		}
		messages[id] = append(messages[id], message)
	}
	return messages
}

// get asks the publisher, and gives the status of its answer.
func (b *bed) get(path string) int {
	b.Helper()
	return backendtest.Request(b, http.MethodGet, "http://"+b.listen+path, "")
}

// ready is the status of the publisher's readiness.
func (b *bed) ready() int { return b.get("/readyz") }

// moody is a Pub/Sub that has no quota for some events, for some time.
type moody struct {
	mu      sync.Mutex
	refusal map[string]func() bool // whether it still refuses
	tries   map[string]int
}

func newMoody() *moody {
	return &moody{refusal: make(map[string]func() bool), tries: make(map[string]int)}
}

// on makes the server so.
func (m *moody) on() pstest.ServerReactorOption {
	return pstest.ServerReactorOption{FuncName: "Publish", Reactor: m}
}

// refuse has an event refused so many times.
func (m *moody) refuse(id uuid.UUID, times int) {
	m.refuseWhile(id, func() bool {
		times--
		return times >= 0
	})
}

// refuseWhile has an event refused for as long as the answer is yes. It is asked with every try.
func (m *moody) refuseWhile(id uuid.UUID, refused func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusal[id.String()] = refused
}

// tried is how often an event was published, or tried to be.
func (m *moody) tried(id uuid.UUID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tries[id.String()]
}

// React answers a request.
func (m *moody) React(request any) (handled bool, answer any, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range request.(*pubsubpb.PublishRequest).GetMessages() {
		id := message.GetAttributes()["event_id"]
		m.tries[id]++
		if refused := m.refusal[id]; refused != nil && refused() {
			err = status.Error(codes.Unknown, "refused"+strings.Repeat("!", 2000))
		}
	}
	return err != nil, &pubsubpb.PublishResponse{}, err
}

// lines is a log of JSON.
type lines struct{ logtest.Log }

// all are the lines with a message, decoded.
func (l *lines) all(t *testing.T, message string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.Text()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%s is no line of the log: %v", line, err)
		}
		if fields["msg"] == message {
			found = append(found, fields)
		}
	}
	return found
}
