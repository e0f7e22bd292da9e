package gcppubsub

import (
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/packfinderz/outbox"
)

const (
	// The limits of a request: the service's for messages, and ours for bytes unless it is a single message.
	requestMessages = 1000
	requestBytes    = 1 << 20
)

// request is one call: messages of one topic and one ordering key. The service takes all of them or none.
type request struct {
	topic    string
	key      string
	messages []*pubsubpb.PubsubMessage
	places   []int // of the messages in the batch
	bytes    int
	// refused is why the only message of this request cannot be sent.
	refused error
}

// join takes a later request of the same key into this one, where both fit.
func (r *request) join(later *request) bool {
	if r.refused != nil || later.refused != nil || r.topic != later.topic ||
		len(r.messages)+len(later.messages) > requestMessages || r.bytes+later.bytes > requestBytes {
		return false
	}
	r.messages, r.places, r.bytes = append(r.messages, later.messages...), append(r.places, later.places...), r.bytes+later.bytes
	return true
}

func (r *request) split() (first, second *request) {
	half := len(r.messages) / 2
	a, b := *r, *r
	a.messages, a.places, a.bytes = r.messages[:half], r.places[:half], r.bytes/2
	b.messages, b.places, b.bytes = r.messages[half:], r.places[half:], r.bytes/2
	return &a, &b
}

// lane is a sequence of requests; a later one is sent only if the earlier ones succeeded.
type lane struct{ requests []*request }

func (l *lane) add(r *request) {
	if n := len(l.requests); n == 0 || !l.requests[n-1].join(r) {
		l.requests = append(l.requests, r)
	}
}

// plan divides a batch into lanes: one per key, whatever its topics, and one for each request of messages without a
// key.
func (p *Publisher) plan(messages []outbox.Message) []*lane {
	var lanes []*lane
	byKey := make(map[string]*lane)
	loose := make(map[string]*request) // the last one without a key, by topic
	for i := range messages {
		r := p.prepare(i, &messages[i])
		switch {
		case r.key != "" && byKey[r.key] != nil:
			byKey[r.key].add(r)
			continue
		case r.key == "" && loose[r.topic] != nil && loose[r.topic].join(r):
			continue
		}
		l := &lane{requests: []*request{r}}
		lanes = append(lanes, l)
		if r.key != "" {
			byKey[r.key] = l
		} else if r.refused == nil {
			loose[r.topic] = r
		}
	}
	return lanes
}

// prepare makes a request of one message.
func (p *Publisher) prepare(place int, message *outbox.Message) *request {
	r := &request{places: []int{place}}
	if !p.config.Unordered {
		r.key = message.Key
	}
	if r.topic, r.refused = p.topic(message); r.refused != nil {
		return r
	}
	encoded, err := p.encode(message)
	if err != nil {
		r.refused = err
		return r
	}
	r.messages = []*pubsubpb.PubsubMessage{encoded}
	r.bytes, r.refused = checkSize(r.topic, encoded)
	return r
}
