package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/packfinderz/outbox/layouts/survey"
)

// Step is one migration and its status.
type Step struct {
	// Version is its number.
	Version int64 `json:"version"`
	// Name is its file's name.
	Name string `json:"name"`
	// Applied is whether it is applied.
	Applied bool `json:"applied"`
	// AppliedAt is when it was applied, if known.
	AppliedAt *time.Time `json:"appliedAt,omitempty"`
	// Adopted is whether its table existed before: it will not be applied.
	Adopted bool `json:"adopted,omitempty"`
}

// Status lists the migrations. It writes nothing.
func (m *Migrator) Status(ctx context.Context) ([]Step, error) {
	list, err := m.list(ctx)
	if err != nil || m.config.Queue == nil {
		return list, err
	}
	err = m.withConn(ctx, func(conn *pgx.Conn) error {
		found, err := m.set().Look(ctx, conn)
		if err != nil {
			return err
		}
		for i := range list {
			list[i].Adopted = slices.ContainsFunc(found.Taken, func(o survey.Object) bool {
				return o.Kind == survey.Table && o.Version == list[i].Version
			})
		}
		return nil
	})
	return list, err
}

// list returns the migrations and which are applied. Goose's own status would create its version table first.
func (m *Migrator) list(ctx context.Context) ([]Step, error) {
	started, err := m.exists(ctx, m.versions)
	if err != nil {
		return nil, err
	}
	if !started {
		var list []Step
		for _, source := range m.provider.ListSources() {
			list = append(list, Step{Version: source.Version, Name: source.Path})
		}
		return list, nil
	}
	statuses, err := m.provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of the migrations: %w", err)
	}
	list := make([]Step, len(statuses))
	for i, status := range statuses {
		list[i] = Step{Version: status.Source.Version, Name: status.Source.Path, Applied: status.State == goose.StateApplied}
		if list[i].Applied {
			at := status.AppliedAt.UTC()
			list[i].AppliedAt = &at
		}
	}
	return list, nil
}
