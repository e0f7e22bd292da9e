package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/layouts/layoutfile"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/pgstream"
)

// source is where a command finds events: --from, --layout, --schema, --table. Every command reads them from the
// environment, too: a command that looked elsewhere than the relay would mislead.
type source struct {
	from, layout, schema, table string
}

func (s *source) flags(cmd *cobra.Command) {
	s.databaseFlags(cmd)
	s.layoutFlags(cmd)
}

// layoutFlags adds the flags of commands that need no database.
func (s *source) layoutFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.layout, "layout", cmp.Or(os.Getenv("OUTBOX_LAYOUT"), pgstream.LayoutName), "standard, another shipped layout's `name`, or the path of a layout file (see outbox layouts)")
	f.StringVar(&s.table, "table", os.Getenv("OUTBOX_TABLE"), "`name` of the table (default: the layout's)")
}

// databaseFlags adds the flags of commands for streams only.
func (s *source) databaseFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.from, "from", "", "database `URL`, such as postgres://user@host/database (or OUTBOX_DATABASE_URL)")
	f.StringVar(&s.schema, "schema", os.Getenv("OUTBOX_SCHEMA"), "`schema` of the tables (default: the search path's first)")
}

// resolve finds what --layout names, and places it.
func (s *source) resolve() (place, error) {
	switch {
	case s.layout == "":
		return nil, usagef("--layout is empty; choose one of %s, or give the path of a layout file", shippedNames())
	case s.layout == pgstream.LayoutName:
		if s.table != "" {
			return nil, usagef("--table: the tables of layout %s have fixed names; choose a --schema", s.layout)
		}
		found := stream{pgstream.Stream{Schema: s.schema}}
		return found, asUsage(found.Validate())
	case isPath(s.layout):
		layout, err := layoutfile.Load(s.layout)
		if err != nil {
			return nil, &usageError{err}
		}
		return s.put(queueTable{Layout: layout})
	}
	shipped, ok := shipped.Find(s.layout)
	if !ok {
		return nil, usagef("there is no layout %q; choose one of %s, or give the path of a layout file", s.layout, shippedNames())
	}
	return s.put(queueTable{shipped.Layout, shipped.Migrations})
}

// put places a table in the schema and under the name of the flags.
func (s *source) put(table queueTable) (place, error) {
	table.Schema, table.Table = cmp.Or(s.schema, table.Schema), cmp.Or(s.table, table.Table)
	return table, asUsage(table.Validate())
}

func isPath(layout string) bool {
	switch strings.ToLower(filepath.Ext(layout)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return strings.ContainsRune(layout, filepath.Separator)
}

func shippedNames() string {
	names := []string{pgstream.LayoutName}
	for _, shipped := range shipped.All() {
		names = append(names, shipped.Layout.Name)
	}
	return strings.Join(names, ", ")
}

// config parses the URL. It never repeats the text, which may hold a password.
func (s *source) config() (*pgx.ConnConfig, error) {
	from := cmp.Or(s.from, os.Getenv("OUTBOX_DATABASE_URL"))
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
	// The database may set another encoding for its clients, in which unnamed statements cannot be sent.
	config.RuntimeParams["client_encoding"] = "UTF8"
	return config, nil
}

// connect opens one connection, or says which server did not answer.
func (s *source) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	if err := adapt(ctx, config); err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, classify(fmt.Errorf("connect: %w", err), "")
	}
	return conn, nil
}

// adapt sends statements without a name behind a pooler, which would leave prepared ones in sessions that others
// use, and if the URL asks for another query mode. It chooses the mode of pgx that asks for a statement's types and
// works everywhere.
func adapt(ctx context.Context, config *pgx.ConnConfig) error {
	if config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return classify(fmt.Errorf("connect: %w", err), "")
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // there is nothing to lose
		pooled, err := pgsession.Pooled(ctx, conn)
		if err != nil {
			return classify(err, "")
		}
		if !pooled {
			return nil
		}
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	config.DescriptionCacheCapacity = max(config.DescriptionCacheCapacity, 512)
	return nil
}

func connectPool(ctx context.Context, conn *pgx.ConnConfig, connections int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("prepare the pool: %w", err)
	}
	if err := adapt(ctx, conn); err != nil {
		return nil, err
	}
	config.ConnConfig, config.MaxConns = conn, int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("prepare the pool: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, classify(fmt.Errorf("connect: %w", err), "")
	}
	return pool, nil
}
