// Package migrations has two sets of goose migrations. Sample creates the tables of the api and the worker: stores,
// licenses, notifications. Outbox creates the outbox's two tables in one file, for a backend that runs its own
// migrations; the programs here use the migrations of layouts/packfinderz.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed sample/*.sql
var sample embed.FS

//go:embed outbox/*.sql
var outbox embed.FS

//go:embed roles/worker.sql
var workerRole string

// SampleVersions is the table in which goose records the migrations of Sample.
const SampleVersions = "packfinderz_goose"

// Sample returns the migrations of the sample's tables. They run in the first schema of the search path.
func Sample() fs.FS { return folder(sample, "sample") }

// Outbox returns the migration of the outbox's tables. It runs in the first schema of the search path.
func Outbox() fs.FS { return folder(outbox, "outbox") }

func folder(files embed.FS, name string) fs.FS {
	sub, _ := fs.Sub(files, name) // only an invalid name is an error
	return sub
}

// WorkerRole returns the grants of the role packfinderz_worker: exactly what the worker needs.
func WorkerRole() string { return workerRole }
