package consumer

import (
	"context"
	"errors"
	"strings"
)

// created makes a group that is missing, if that is wanted.
func (r *run) created(ctx context.Context, err error) error {
	if errors.Is(err, errNoGroup) && r.config.Broker.Create {
		return r.group.create(ctx)
	}
	return err
}

// create makes the group, from the stream's first entry on, and the stream if it is missing.
func (g *group) create(ctx context.Context) error {
	ctx, cancel := patiently(ctx, callPatience)
	defer cancel()
	err := g.client.XGroupCreateMkStream(ctx, g.stream, g.name, "0").Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return g.failure("creating the group", err)
	}
	return nil
}
