package pgstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// emitTo commits one event per topic, each without a key.
func (s *stage) emitTo(topics ...string) (ids []uuid.UUID) {
	s.Helper()
	for _, topic := range topics {
		id := uuid.New()
		s.exec(`INSERT INTO outbox_stream (shard, id, topic, type, payload) VALUES (outbox_shard(NULL, $1), $1, $2, 'made', '{}')`, id, topic)
		ids = append(ids, id)
	}
	return ids
}

// alter changes the default subscription.
func (s *stage) alter(change func(*Subscription)) *Subscription {
	s.Helper()
	sub, err := (Stream{}).AlterSubscription(s.Context(), s.pool, DefaultSubscription, change)
	if err != nil {
		s.Fatal(err)
	}
	return sub
}

// takeTopics makes the default subscription one of some topics.
func (s *stage) takeTopics(topics ...string) *Subscription {
	s.Helper()
	return s.alter(func(sub *Subscription) { sub.Filter.Topics = topics })
}

// wantPublished fails unless these events were published, each once and in this order.
func (s *stage) wantPublished(want ...uuid.UUID) {
	s.Helper()
	if !slices.Equal(s.published, want) {
		s.Errorf("published %d events %v, want %d: %v", len(s.published), s.published, len(want), want)
	}
}

// TestFilterAlteredBetweenPages alters the filter while one page is out and the next has been
// read. The first is settled as it is; the second goes by the new filter.
func TestFilterAlteredBetweenPages(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	s.takeTopics("a")
	var told []Subscription
	store := s.open(Config{Changed: func(was, is Subscription) { told = append(told, was, is) }})
	ids := s.emitTo("a", "b", "a", "b", "a", "b", "a", "b")
	batch := s.claim(store, 2) // the first two of topic a
	store.AwaitReadAhead()
	altered := s.takeTopics("b")
	store.PassTime()
	// The shard is taken anew when nothing of it is out.
	if other := s.tryClaim(store, 2); len(other.Messages()) > 0 {
		t.Fatal("a second page of the shard was handed out")
	}
	if s.publish(batch); len(s.settle(batch)) > 0 {
		t.Error("the page that was out could not be settled")
	}
	s.drain(store)
	s.wantPublished(ids[0], ids[2], ids[3], ids[5], ids[7])
	if len(told) != 2 || told[0].Filter.Topics[0] != "a" || told[1].Filter.Topics[0] != "b" || told[1].Generation != altered.Generation {
		t.Errorf("the store told of %+v", told)
	}
	_, fences := store.owned()
	if len(fences) != 1 || fences[0]>>32 != altered.Generation {
		t.Errorf("the fences are %v, want generation %d", fences, altered.Generation)
	}
	if stats, err := store.Stats(t.Context()); err != nil || stats.Due != 0 {
		t.Errorf("the statistics are %+v: %v", stats, err)
	}
	var generation int64
	s.scan(`SELECT generation FROM outbox_relays`, &generation)
	if generation != altered.Generation {
		t.Errorf("the relay says that it serves generation %d, want %d", generation, altered.Generation)
	}
}

// TestRelayThatDidNotNotice has a relay whose next heartbeat is still to come: it opens no window
// by the old filter.
func TestRelayThatDidNotNotice(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.idle(store)
	s.takeTopics("b")
	ids := s.emitTo("a", "b")
	for range 3 {
		if batch := s.tryClaim(store, 10); len(batch.Messages()) > 0 {
			t.Fatal("a window was opened under a definition that is no longer the subscription's")
		}
	}
	store.PassTime()
	s.drain(store)
	s.wantPublished(ids[1])
}

// TestStaleTakeover has a relay that takes a shard with an open window before it notices a change.
func TestStaleTakeover(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	first := s.open(Config{})
	ids := s.emitTo("a", "b", "a", "b")
	s.deliver(s.claim(first, 1))
	first.AwaitReadAhead()
	second := s.open(Config{})
	s.takeTopics("b")
	s.expire()
	// It asks for shards by the definition that it knows.
	if err := second.takeFree(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if numbers, _ := second.owned(); len(numbers) > 0 {
		t.Error("a shard was taken under a definition that is no longer the subscription's")
	}
	second.PassTime()
	s.drain(second)
	s.wantPublished(ids[0], ids[1], ids[3])
}

// TestParkedOutWhileAltered alters the filter while a parked event is out: it is settled as it is.
func TestParkedOutWhileAltered(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	ids := s.emitTo("a")
	s.settle(s.claim(store, 1), failedNow)
	store.PassTime()
	batch := s.claim(store, 1)
	s.takeTopics("b")
	store.PassTime()
	more := s.emitTo("a", "b")
	if other := s.tryClaim(store, 10); len(other.Messages()) > 0 {
		t.Fatal("the shard was served beside its parked event")
	}
	if s.publish(batch); len(s.settle(batch)) > 0 {
		t.Error("the parked event that was out could not be settled")
	}
	s.drain(store)
	s.wantPublished(ids[0], more[1])
}

// TestParkedStaysWhenAltered has a parked event that the new filter does not take: it was taken
// under the old one.
func TestParkedStaysWhenAltered(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	ids := s.emitTo("a")
	s.settle(s.claim(store, 1), failedNow)
	s.takeTopics("b")
	store.PassTime()
	s.drain(store)
	s.wantPublished(ids...)
}

// TestMadeAgainUnderARelay drops the subscription while a page is out, and makes it again with
// another filter. The page moves nothing of the new one.
func TestMadeAgainUnderARelay(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	ids := s.emitTo("a", "b", "a", "b")
	batch := s.claim(store, 2)
	store.AwaitReadAhead()
	s.makeAgain(Subscription{Name: DefaultSubscription, Filter: Filter{Topics: []string{"b"}}})
	if lost := s.settle(batch); len(lost) != 2 {
		t.Errorf("%d events were lost to the drop, want 2", len(lost))
	}
	var moved int
	s.scan(`SELECT count(*) FROM outbox_shards WHERE s1::text <> '1:1:' OR s2 IS NOT NULL OR pos > 0`, &moved)
	if moved > 0 {
		t.Error("the cursor of the new subscription was moved by the old page")
	}
	if batch := s.tryClaim(store, 10); len(batch.Messages()) > 0 {
		s.deliver(batch)
	}
	store.PassTime()
	s.drain(store)
	s.wantPublished(ids[1], ids[3])
}

func (s *stage) makeAgain(sub Subscription) {
	s.Helper()
	if err := (Stream{}).DropSubscription(s.Context(), s.pool, sub.Name, Forced()); err != nil {
		s.Fatal(err)
	}
	if err := (Stream{}).CreateSubscription(s.Context(), s.pool, sub, StartOldest); err != nil {
		s.Fatal(err)
	}
}

// TestGenerationOfAnotherServer has a definition that differs although its number does not, as
// after the promotion of a standby that had not heard of the last change.
func TestGenerationOfAnotherServer(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.idle(store)
	s.exec(`UPDATE outbox_subscriptions SET topics = '{b}'`)
	ids := s.emitTo("a", "b")
	store.reading <- struct{}{}
	store.disconnect()
	store.doneReading()
	s.drain(store)
	s.wantPublished(ids[1])
}

// TestNotAlteredByTheSame draws no generation for a change that changes nothing.
func TestNotAlteredByTheSame(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	before := s.takeTopics("a")
	if after := s.takeTopics("a"); after.Generation != before.Generation {
		t.Errorf("the generation went from %d to %d", before.Generation, after.Generation)
	}
}

// publishing is a publisher that is a function.
type publishing func(ctx context.Context, messages []outbox.Message) []error

func (p publishing) Publish(ctx context.Context, messages []outbox.Message) []error {
	return p(ctx, messages)
}

// received waits for what a channel brings, or for its end.
func received[T any](t *testing.T, c <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-time.After(time.Minute):
		t.Fatal("what was waited for did not happen")
	}
	return value
}

// TestRelayOfDropped runs a whole relay. It ends when its subscription is dropped, whatever it
// does at that moment.
func TestRelayOfDropped(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 2)
	store := s.open(Config{Lease: 300 * time.Millisecond})
	entered, left := make(chan struct{}), make(chan struct{})
	var once sync.Once
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: store, Poll: 20 * time.Millisecond, PublishTimeout: time.Hour,
		Publisher: publishing(func(ctx context.Context, messages []outbox.Message) []error {
			once.Do(func() { close(entered) })
			<-ctx.Done() // the lease is lost
			close(left)
			return slices.Repeat([]error{ctx.Err()}, len(messages))
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.emit("a")
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(t.Context()) }()
	received(t, entered)
	if err := (Stream{}).DropSubscription(t.Context(), s.pool, DefaultSubscription, Forced()); err != nil {
		t.Fatal(err)
	}
	received(t, left)
	if err := received(t, ended); !errors.Is(err, outbox.ErrGone) || !errors.Is(err, ErrNoSubscription) ||
		err.Error() != `outbox: subscription "default" was dropped` {
		t.Errorf("the relay ended with %v", err)
	}
}

// TestAlteredUnderLoad alters the filter back and forth while two relays publish. Topic a is
// taken by every definition: each of its events goes out once, in the order of its key.
func TestAlteredUnderLoad(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 4)
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	got := make(map[string][]string) // by key
	count := 0
	all := make(chan struct{})
	const keys, each = 8, 60
	publisher := publishing(func(_ context.Context, messages []outbox.Message) []error {
		mu.Lock()
		defer mu.Unlock()
		for i := range messages {
			if messages[i].Topic == "a" {
				got[messages[i].Key] = append(got[messages[i].Key], string(messages[i].Payload))
				if count++; count == keys*each {
					close(all)
				}
			}
		}
		return make([]error, len(messages))
	})
	var running sync.WaitGroup
	for range 2 {
		relay, err := outbox.NewRelay(outbox.RelayConfig{
			Store: s.open(Config{Lease: 3 * time.Second}), Publisher: publisher, BatchSize: 10, Poll: 20 * time.Millisecond, Listen: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := relay.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	defer running.Wait()
	defer stop()
	for n := range each {
		for key := range keys {
			s.exec(`INSERT INTO outbox_stream (shard, id, topic, type, key, payload)
				SELECT outbox_shard($1, id), id, topic, 'made', $1, convert_to($2, 'UTF8')
				FROM (VALUES (gen_random_uuid(), 'a'), (gen_random_uuid(), 'b')) AS new(id, topic)`, fmt.Sprint(key), fmt.Sprint(n))
		}
		if n%3 == 0 {
			s.takeTopics([][]string{{"a"}, {"a", "b"}, nil}[n/3%3]...)
		}
	}
	received(t, all)
	stop()
	running.Wait()
	for key, list := range got {
		for n := range each {
			if n >= len(list) || list[n] != fmt.Sprint(n) || len(list) != each {
				t.Fatalf("key %s has %d events, want %d in order: %v", key, len(list), each, list)
			}
		}
	}
}
