package database

import (
	"context"
	"slices"

	"github.com/packfinderz/outbox/layouts/survey"
	"github.com/packfinderz/outbox/packfinderz/migrations"
)

// TakenFromSample are the names that the sample would give its tables, indexes and types, and that others have: api migrate leaves the
// sample out then, and its programs cannot run. Tables of the sample that were dropped by hand are a survey.ErrConflict.
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
