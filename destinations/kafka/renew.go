package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// connect makes a client. Nothing is known of the cluster then.
func (p *Publisher) connect() error {
	client, err := kgo.NewClient(p.options...)
	if err != nil {
		return err
	}
	p.client, p.worn = client, false
	p.known.Clear()
	p.warm.Clear()
	p.silent.Clear()
	return nil
}

// current is the client.
func (p *Publisher) current() *kgo.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

// wear makes the next batch use a new client. A client never notices that a topic was deleted and created again, and
// never forgets a refused producer id. Purging the topic from the client would restart the sequence numbers of its
// records; its documentation warns of errors and dropped records if the partitions are still the old ones.
func (p *Publisher) wear(client *kgo.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worn = p.worn || client == p.client
}

// renew returns the client for a batch: a new one, if the last is worn. It waits for the running wave, so that only
// pings lose their client, and those are repeated.
func (p *Publisher) renew(ctx context.Context) *kgo.Client {
	p.mu.Lock()
	worn := p.worn
	p.mu.Unlock()
	if worn {
		select {
		case p.turn <- struct{}{}:
			p.replace()
			<-p.turn
		case <-ctx.Done(): // nothing will be sent
		}
	}
	return p.current()
}

func (p *Publisher) replace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.worn {
		return // somebody was faster
	}
	old := p.client
	if err := p.connect(); err != nil {
		return // it was made with the same options before; the old one goes on
	}
	p.closing.Go(old.Close)
}
