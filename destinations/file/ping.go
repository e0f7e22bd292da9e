package file

import "context"

// Ping checks that the file can be written, and that the last write has ended.
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
