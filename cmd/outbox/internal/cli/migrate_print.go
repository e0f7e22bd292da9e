package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/ops/audit"
)

func newMigratePrint(a *app) *cobra.Command {
	var from source
	var options migrationOptions
	var tool, out string
	var first int64
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the migrations for the tool that you migrate with",
		Long: `Prints the layout's migrations as files of goose, tern, Atlas or Flyway, or writes them into a
folder with --out. No database is needed. The files make their tables in the first schema of the
search path. A table that another tool made is migrated by that tool: outbox migrate up refuses it.

With --out only the files that the folder lacks are written, and numbered after all files in it.
After an update of Outbox the same command adds what is new. --first is the version of the first
file instead; a version that another file has is refused, and then nothing is written. Versions of
Atlas are times, such as 20260131120000. Atlas and Flyway get no way down.`,
		Example: `  outbox migrate print
  outbox migrate print --format tern --out migrations
  outbox migrate print --format flyway --layout modkit --out src/main/resources/db/migration`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if first < 0 || cmd.Flags().Changed("first") && first == 0 {
				return usagef("--first is %d; versions begin at 1", first)
			}
			files, err := migrationFiles(&from, options)
			if err != nil {
				return err
			}
			printed, err := migrate.Print(files, tool, first, time.Now())
			if err == nil && out != "" {
				printed, err = migrate.Missing(out, printed, first)
			}
			if err != nil {
				return &usageError{err}
			}
			if out == "" {
				return printEach(a, printed, func(f migrate.File) string { return fmt.Sprintf("-- %s\n\n%s", f.Name, f.Content) })
			}
			return a.writeFiles(printed, out)
		},
	}
	from.layoutFlags(cmd)
	options.auditFlag(cmd)
	options.shapeFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&tool, "format", "goose", "the `tool`: "+migrate.Formats)
	f.Int64Var(&first, "first", 0, "`version` of the first file (default: after the files in --out; for Atlas, the time)")
	f.StringVar(&out, "out", "", "`folder` to write the files to; it has to be there, and no file in it is overwritten")
	return cmd
}

// migrationFiles returns the goose migrations of what the flags name.
func migrationFiles(from *source, options migrationOptions) (fs.FS, error) {
	if options.audit {
		return audit.Migrations()
	}
	found, err := from.resolve()
	if err != nil {
		return nil, err
	}
	return found.files(options)
}

// writeFiles writes files into a folder, and says which.
func (a *app) writeFiles(files []migrate.File, folder string) error {
	for _, file := range files {
		path := filepath.Join(folder, file.Name)
		if err := os.WriteFile(path, []byte(file.Content), 0o644); err != nil { //nolint:gosec // they are to be read by others
			return fmt.Errorf("write a migration: %w", err)
		}
		if err := a.printf("%s\n", path); err != nil {
			return err
		}
	}
	if !a.json && len(files) == 0 {
		return a.printf("nothing is missing in %s\n", folder)
	}
	return nil
}
