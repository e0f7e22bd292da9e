// Package migrations has two sets of goose migrations. Sample makes the tables that the api and the worker of this repository
// need: stores, licenses, notifications. Outbox is the outbox's two tables in one file, for a backend that runs its migrations itself;
// the programs here make the same tables with the migrations of layouts/packfinderz.
package migrations

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed sample/*.sql
var sample embed.FS

//go:embed outbox/*.sql
var outbox embed.FS

//go:embed roles/worker.sql
var workerRole string

// SampleVersions is the table in which goose notes what was applied of Sample.
const SampleVersions = "packfinderz_goose"

// Sample is the set of the sample's tables. They are made in the schema that is first in the search path.
func Sample() fs.FS { return folder{sample, "sample"} }

// Outbox is the set of the outbox's tables, in one file. They are made in the schema that is first in the search path.
func Outbox() fs.FS { return folder{outbox, "outbox"} }

// folder is fs.Sub for a name that is known to be valid, and so has no error.
type folder struct {
	files embed.FS
	name  string
}

// Open opens a file of the folder.
func (f folder) Open(name string) (fs.File, error) { return f.files.Open(path.Join(f.name, name)) }

// WorkerRole grants the role packfinderz_worker what the worker needs, and nothing else.
func WorkerRole() string { return workerRole }
