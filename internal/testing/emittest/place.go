package emittest

import (
	"io/fs"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/pgstream"
)

// place is a target the suite runs on, and what the tests have to know of it.
type place struct {
	name       string
	target     outbox.Target
	migrations func() (fs.FS, error)
	schema     string
	// tables are those that emitting writes; the first has the events.
	tables []string
	// payload and due are the columns of the payload and of the first attempt; due is empty
	// where there is none.
	payload, due string
	// raw is true where a payload is kept byte for byte; elsewhere it is jsonb.
	raw bool
	// dedupe and tenants are true where there are dedupe keys and tenants.
	dedupe, tenants bool
	// ordered is true where events keep their order.
	ordered bool
	// elsewhere is the same target in another schema and, where that can be chosen, table.
	elsewhere func(schema, table string) place
}

func places() []place {
	all := []place{streamPlace(pgstream.Stream{})}
	for _, shipped := range shipped.All() {
		all = append(all, layoutPlace(shipped, shipped.Layout))
	}
	return all
}

func layoutPlace(shipped shipped.Layout, layout layouts.Layout) place {
	return place{
		name:       layout.Name,
		target:     layout,
		migrations: func() (fs.FS, error) { return shipped.Migrations(layout) },
		schema:     layout.Schema,
		tables:     []string{layout.Table},
		payload:    layout.Columns.Payload.Name,
		due:        layout.Columns.NextAttemptAt.Name,
		dedupe:     !layout.Columns.DedupeKey.IsZero(),
		tenants:    !layout.Columns.TenantID.IsZero(),
		elsewhere: func(schema, table string) place {
			renamed := layout
			renamed.Schema, renamed.Table = schema, table
			return layoutPlace(shipped, renamed)
		},
	}
}

func streamPlace(stream pgstream.Stream) place {
	return place{
		name:       pgstream.LayoutName,
		target:     stream,
		migrations: func() (fs.FS, error) { return pgstream.Migrations(pgstream.Shape{}) },
		schema:     stream.Schema,
		tables:     []string{"outbox_stream", "outbox_dedupe"},
		payload:    "payload",
		due:        "not_before",
		raw:        true,
		dedupe:     true,
		tenants:    true,
		ordered:    true,
		elsewhere:  func(schema, _ string) place { return streamPlace(pgstream.Stream{Schema: schema}) },
	}
}
