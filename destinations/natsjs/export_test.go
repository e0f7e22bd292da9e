package natsjs

import "time"

// UnderWay is how many messages wait for their acknowledgement.
func (p *Publisher) UnderWay() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.current.link.window)
}

// WaitForWrites has a write to a server that does not read wait for as long as a test may. It comes
// before the first use.
func (p *Publisher) WaitForWrites() { p.options.FlusherTimeout = time.Hour }
