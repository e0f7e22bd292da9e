package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// maxWaveRecords is below the number of records that the client buffers.
const maxWaveRecords = 4000

// batch publishes one call's messages in waves.
//
// Kafka stores a record batch entirely or not at all. When it refuses one, the client fails everything it has
// buffered for the partition, but sends what it gets later: a later message of a key would overtake. So a wave fits
// one record batch per partition, is buffered before any of it is sent, and is answered before the next is sent. A
// refused record batch is halved until the message to blame is alone.
type batch struct {
	publisher *Publisher
	client    *kgo.Client
	messages  []outbox.Message
	records   []*kgo.Record
	sizes     []int
	errs      []error
	failed    map[string]bool // by key
	closed    map[string]bool // unavailable topics
	away      bool            // the whole cluster is unavailable
}

// publish returns the messages' errors.
func (b *batch) publish(ctx context.Context) []error {
	if len(b.messages) == 0 {
		return nil
	}
	b.client = b.publisher.renew(ctx)
	topics := make([]string, len(b.messages))
	for i := range b.messages {
		topics[i] = b.messages[i].Topic
	}
	bad := b.publisher.checkTopics(ctx, topics, kmsg.ACLOperationWrite)
	left := make([]int, 0, len(b.messages))
	for i := range b.messages {
		m := &b.messages[i]
		if err := bad[m.Topic]; err != nil {
			b.fail(i, err)
			continue
		}
		b.records[i], b.sizes[i] = b.publisher.config.encode(m)
		left = append(left, i)
	}
	for len(left) > 0 {
		wave := b.cut(left)
		left = left[len(wave):]
		b.send(ctx, wave)
	}
	return b.errs
}

// cut returns the messages of the next wave. If the client does not know the partitions of a topic yet, it fills
// them in several record batches while they are being sent: then no key comes twice in a wave.
func (b *batch) cut(left []int) []int {
	size := 0
	var cold map[string]bool
	for n, i := range left {
		size += b.sizes[i]
		if n > 0 && (size > b.publisher.config.BatchBytes || n == maxWaveRecords) {
			return left[:n]
		}
		key := b.messages[i].Key
		if _, warm := b.publisher.warm.Load(b.messages[i].Topic); warm || key == "" {
			continue
		}
		if cold[key] {
			return left[:n]
		}
		if cold == nil {
			cold = make(map[string]bool)
		}
		cold[key] = true
	}
	return left
}

// send publishes one wave, except what must wait for an earlier message of its key.
func (b *batch) send(ctx context.Context, wave []int) {
	places := make([]int, 0, len(wave))
	records := make([]*kgo.Record, 0, len(wave))
	for _, i := range wave {
		if b.away || b.closed[b.messages[i].Topic] || b.failed[b.messages[i].Key] || ctx.Err() != nil {
			b.errs[i] = outbox.ErrNotAttempted
			continue
		}
		// Halves are sent again, but the client remembers the context of the first time.
		b.records[i].Context = nil
		places, records = append(places, i), append(records, b.records[i])
	}
	if len(records) == 0 {
		return
	}
	var refused []int
	var refusals []error
	failures := make(map[int]error)
	for n, err := range b.publisher.produce(ctx, b.client, records) {
		i := places[n]
		told := classify(err, b.messages[i].Topic)
		switch class := outbox.Classify(told); {
		case told == nil:
			b.publisher.warm.Store(b.messages[i].Topic, nil)
			b.publisher.silent.Delete(b.messages[i].Topic)
		case isAnswer(err) && class != outbox.ClassUnavailable:
			refused, refusals = append(refused, i), append(refusals, told)
		case errors.Is(told, outbox.ErrNotAttempted):
			b.errs[i] = told
		default:
			b.fail(i, told)
			failures[i] = told
		}
	}
	for i, err := range failures {
		b.learn(i, err)
	}
	if len(refused) == 1 {
		b.fail(refused[0], refusals[0])
		b.learn(refused[0], refusals[0])
		return
	}
	if half := len(refused) / 2; half > 0 {
		b.send(ctx, refused[:half])
		b.send(ctx, refused[half:])
	}
}

// fail records a failure. The other messages of its key in the same record batch were not attempts of their own;
// but if it is unknown whether the batch was stored, each is said to be in doubt.
func (b *batch) fail(i int, err error) {
	key := b.messages[i].Key
	if b.failed[key] && !isDoubt(err) {
		b.errs[i] = outbox.ErrNotAttempted
		return
	}
	b.errs[i] = err
	if key != "" {
		b.failed[key] = true
	}
	switch {
	case failure.OfTopic(err):
		b.closed[b.messages[i].Topic] = true
	case outbox.Classify(err) == outbox.ClassUnavailable:
		b.away = true
	}
}

// learn records a topic that does not answer. A missing topic is asked for again before the next message to it. A
// client that met a refusal is replaced, and so is one that heard from nobody: it may keep to a broker that hangs.
func (b *batch) learn(i int, err error) {
	switch {
	case !isAnswer(err):
		b.publisher.silent.Store(b.messages[i].Topic, nil)
		if unreachable, ok := errors.AsType[unreachableError](err); ok && !unreachable.partial {
			b.publisher.wear(b.client)
		}
	case outbox.IsMisconfigured(err):
		b.publisher.forget(b.messages[i].Topic)
		b.publisher.wear(b.client)
	case failure.Is[*outbox.UnclearError](err):
		b.publisher.wear(b.client)
	}
}
