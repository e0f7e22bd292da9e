package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/layoutfile"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstore"
)

// source is the outbox table a command works on: --from, --layout, --schema, --table.
type source struct {
	from, layout, schema, table string
}

func (s *source) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.from, "from", "", "database `URL`, such as postgres://user@host/database (or OUTBOX_DATABASE_URL)")
	f.StringVar(&s.layout, "layout", "", "a shipped layout's `name`, or the path of a layout file (see outbox layouts)")
	f.StringVar(&s.schema, "schema", "", "`schema` of the table (default: the search path's first)")
	f.StringVar(&s.table, "table", "", "`name` of the table (default: the layout's)")
}

// resolve reads the layout and places it. A layout from a file has no migrations of its
// own; shipped is then nil.
func (s *source) resolve() (layout pgstore.Layout, shipped *layouts.Shipped, err error) {
	switch {
	case s.layout == "":
		return layout, nil, usagef("--layout is missing; choose one of %s, or give the path of a layout file", shippedNames())
	case isPath(s.layout):
		if layout, err = layoutfile.Load(s.layout); err != nil {
			return layout, nil, &usageError{err}
		}
	default:
		found, ok := layouts.Find(s.layout)
		if !ok {
			return layout, nil, usagef("there is no layout %q; choose one of %s, or give the path of a layout file",
				s.layout, shippedNames())
		}
		layout, shipped = found.Layout, &found
	}
	if s.schema != "" {
		layout.Schema = s.schema
	}
	if s.table != "" {
		layout.Table = s.table
	}
	if err := layout.Validate(); err != nil {
		return layout, nil, &usageError{err}
	}
	return layout, shipped, nil
}

func isPath(layout string) bool {
	switch strings.ToLower(filepath.Ext(layout)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return strings.ContainsRune(layout, filepath.Separator)
}

func shippedNames() string {
	var names []string
	for _, shipped := range layouts.All() {
		names = append(names, shipped.Layout.Name)
	}
	return strings.Join(names, ", ")
}

// config parses the URL. Its text is never repeated: it may hold a password.
func (s *source) config() (*pgx.ConnConfig, error) {
	from := s.from
	if from == "" {
		from = os.Getenv("OUTBOX_DATABASE_URL")
	}
	if from == "" {
		return nil, usagef("--from is missing; give a database URL, or set OUTBOX_DATABASE_URL")
	}
	config, err := pgx.ParseConfig(from)
	if err != nil {
		return nil, usagef("the database URL cannot be read; it looks like postgres://user:password@host:5432/database")
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "outbox"
	}
	return config, nil
}

// connect opens one connection, or says which server did not answer.
func (s *source) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, classify(fmt.Errorf("connect: %w", err), "")
	}
	return conn, nil
}
