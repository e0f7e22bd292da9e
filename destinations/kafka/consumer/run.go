package consumer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/internal/consuming"
)

const (
	commitInterval = 500 * time.Millisecond
	commitTimeout  = 5 * time.Second
)

// run is one Run of a consumer, with its partitions and the records it has of them.
type run struct {
	*Consumer
	stopping context.Context // ends when no more is to be begun
	handling context.Context // of the handlers
	client   *kgo.Client
	queues   *consuming.Queues
	changed  consuming.Signal // sent when something has ended

	committing sync.Mutex // held while a commit is under way
	mu         sync.Mutex
	partitions map[place]*partition
	serial     uint64
}

// receive takes records while there is room for them, until the context ends.
func (r *run) receive(ctx context.Context) {
	told := make(map[place]string)
	for ctx.Err() == nil {
		n := r.changed.Await(ctx, r.room)
		if n == 0 {
			return
		}
		fetches := r.client.PollRecords(ctx, n)
		r.complain(ctx, fetches, told)
		fetches.EachRecord(r.take)
		r.sortStuck()
		r.client.AllowRebalance()
	}
}

// complain logs why a partition cannot be read, once for each reason.
func (r *run) complain(ctx context.Context, fetches kgo.Fetches, told map[place]string) {
	fetches.EachError(func(topic string, partition int32, err error) {
		at := place{topic, partition}
		// watch logs failing connections.
		if ctx.Err() != nil || told[at] == err.Error() || outbox.Classify(err) == outbox.ClassUnavailable {
			return
		}
		told[at] = err.Error()
		r.log.Warn("records cannot be read; trying on", "topic", topic, "partition", partition, "error", err)
	})
}

// take begins with a record.
func (r *run) take(record *kgo.Record) {
	p, e := r.add(record)
	if p == nil {
		return
	}
	delivery := decode(record)
	key := ""
	if len(record.Key) > 0 {
		// A partition that was lost and is back is read again from the last commit. It must not wait behind what is
		// left of the first time.
		key = fmt.Sprintf("%d/%s", p.serial, record.Key)
	}
	r.queues.Add(key, func() (bool, time.Duration) { return r.handle(p, e, &delivery) })
}

// handle handles a record once, and asks to be called again if it failed: Kafka itself never delivers it a second
// time.
func (r *run) handle(p *partition, e *entry, delivery *consume.Delivery) (again bool, after time.Duration) {
	if !r.begin(p, e) {
		return false, 0 // it is not committed, and comes again
	}
	verdict := r.processor.Process(p.ctx, *delivery)
	r.end(p, e, verdict.Ack)
	r.sortStuck()
	delivery.Message.Attempt++
	return !verdict.Ack && p.ctx.Err() == nil, verdict.After
}

// leave leaves the group, so that others need not wait for the end of the session.
func (r *run) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	r.client.AllowRebalance()
	if err := r.client.LeaveGroupContext(ctx); err != nil {
		r.log.Warn("the group could not be left; its others wait until the session ends", "error", err)
	}
	r.client.CloseAllowingRebalance()
}
