package natsjs

// UnderWay is how many messages wait for their acknowledgement.
func (p *Publisher) UnderWay() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.current.link.window)
}
