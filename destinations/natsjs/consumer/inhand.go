package consumer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/internal/consuming"
)

// delivered is a message that the server waits to hear about.
type delivered struct {
	msg      jetstream.Msg
	sequence uint64 // in the stream
	delivery consume.Delivery
}

// hand has the messages that were received and not yet settled. It keeps telling the server that all of them are in
// progress, waiting ones included: otherwise the server would deliver them again.
type hand struct {
	size  int
	freed consuming.Signal // sent when a message has left

	mu   sync.Mutex
	held map[uint64]*delivered
}

// room waits until there is room for some messages, and returns for how many; 0 if ctx ended first.
func (h *hand) room(ctx context.Context, some int) int {
	return h.freed.Await(ctx, func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		if n := h.size - len(h.held); n >= some {
			return n
		}
		return 0
	})
}

// take takes a message, unless it is there already.
func (h *hand) take(d *delivered) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := h.held[d.sequence]; there {
		return false
	}
	h.held[d.sequence] = d
	return true
}

func (h *hand) drop(d *delivered) {
	h.mu.Lock()
	delete(h.held, d.sequence)
	h.mu.Unlock()
	h.freed.Send()
}

// all are the messages, in the order of the stream.
func (h *hand) all() []*delivered {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Values(h.held), func(a, b *delivered) int { return cmp.Compare(a.sequence, b.sequence) })
}

// giveBack returns what is left to the stream, to be delivered again at once and in order.
func (h *hand) giveBack() {
	for _, d := range h.all() {
		_ = d.msg.Nak() // unheard, it is delivered again all the same, only later
		h.drop(d)
	}
}

// beat tells the server that the messages are being worked on.
func (h *hand) beat() {
	for _, d := range h.all() {
		_ = d.msg.InProgress() // unheard, the message may come twice
	}
}
