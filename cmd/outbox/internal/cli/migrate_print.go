package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/ops"
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

--first is the version of the first file, so that they fit behind your own. Versions of Atlas are
times, such as 20260131120000. Atlas and Flyway get no way down.`,
		Example: `  outbox migrate print
  outbox migrate print --format tern --first 12 --out migrations
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
			if err != nil {
				return &usageError{err}
			}
			return a.printFiles(printed, out)
		},
	}
	from.layoutFlags(cmd)
	options.auditFlag(cmd)
	options.shapeFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&tool, "format", "goose", "the `tool`: "+migrate.Formats)
	f.Int64Var(&first, "first", 0, "`version` of the first file (default 1; for Atlas, the time)")
	f.StringVar(&out, "out", "", "`folder` to write the files to, which is there; a file that exists is not overwritten")
	return cmd
}

// migrationFiles are the goose migrations of what the flags name.
func migrationFiles(from *source, options migrationOptions) (fs.FS, error) {
	if options.audit {
		return ops.Migrations()
	}
	found, err := from.resolve()
	if err != nil {
		return nil, err
	}
	return found.files(options)
}

// printFiles prints files, or writes them into a folder: all of them or, if one of them is there already, none.
func (a *app) printFiles(files []migrate.File, folder string) error {
	if folder != "" {
		for _, file := range files {
			if _, err := os.Stat(filepath.Join(folder, file.Name)); !errors.Is(err, fs.ErrNotExist) {
				return usagef("%s is there already; choose another --out or --first", filepath.Join(folder, file.Name))
			}
		}
	}
	for _, file := range files {
		var err error
		path := filepath.Join(folder, file.Name)
		switch {
		case folder != "":
			if err = os.WriteFile(path, []byte(file.Content), 0o644); err == nil { //nolint:gosec // they are to be read by others
				err = a.printf("%s\n", path)
			}
		case a.json:
			err = a.printJSON(file)
		default:
			err = a.printf("-- %s\n\n%s\n", file.Name, file.Content)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}
