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
	p.known, p.warm, p.silent = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	return nil
}

// current is the client.
func (p *Publisher) current() *kgo.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

// wear has the next batch sent by a new client. For as long as it lives, a client keeps to the
// topic that it found first, also when that was deleted and made again, and to a refusal to give
// it a producer id. To purge the topic from the client would begin the numbers of its records
// again: where the partitions are still the old ones, the client's own documentation warns of
// errors and of records that are dropped. A new client has numbers of its own.
func (p *Publisher) wear(client *kgo.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worn = p.worn || client == p.client
}

// renew is the client for a batch: a new one, if the last is worn. It waits for the wave that is
// under way, so that only questions lose their client, which are asked again.
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
