package database

import (
	"context"
	"slices"

	"github.com/packfinderz/outbox/layouts/survey"
	"github.com/packfinderz/outbox/packfinderz/migrations"
)

// TakenFromSample returns the names of the sample's tables, indexes and types that something else has: then api migrate
// leaves the sample out, and its programs cannot run. Dropped tables of the sample are a survey.ErrConflict.
func TakenFromSample(ctx context.Context, db survey.DB) (names []string, err error) {
	found, err := survey.Set{Files: migrations.Sample(), Versions: migrations.SampleVersions}.Look(ctx, db)
	if err != nil {
		return nil, err
	}
	if err := found.LostError(); err != nil {
		return nil, err
	}
	for _, o := range found.Taken {
		if o.Kind == survey.Table || o.Problem != "" {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
