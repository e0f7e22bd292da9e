// Package migrations has the tables of the backend itself: stores, licences, notifications. Those of the
// outbox are in layouts/packfinderz.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed *.sql
var files embed.FS

//go:embed roles/worker.sql
var workerRole string

// Files are the goose migrations. They run in the schema that is first in the search path.
func Files() fs.FS { return files }

// WorkerRole grants the role packfinderz_worker what the worker needs, and nothing else.
func WorkerRole() string { return workerRole }
