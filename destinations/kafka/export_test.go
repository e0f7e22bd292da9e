package kafka

import "time"

// Heard reports whether a produce request was answered since.
func (p *Publisher) Heard(since time.Time) bool {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	return p.health.err == nil && p.health.at.After(since)
}

// IsDoubt reports whether a message may have been stored although the client says this of it.
func IsDoubt(err error) bool { return isDoubt(classify(err, "orders")) }
