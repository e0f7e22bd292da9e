package file

import "context"

// Ping asks whether there is a file to be written to, and whether the last write came to an end.
func (p *Publisher) Ping(ctx context.Context) error {
	if !p.take(ctx) {
		return hangs(ctx)
	}
	out, ok := p.out.(*disk)
	if !ok {
		<-p.turn
		return nil
	}
	return p.use(ctx, out.follow)
}
