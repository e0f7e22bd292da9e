package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/pgstream"
)

func newMigrate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make, remove or inspect the tables of a layout",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say what to do: outbox migrate up, down, status or print")
		},
	}
	cmd.AddCommand(newMigrateUp(a), newMigrateDown(a), newMigrateStatus(a), newMigratePrint(a))
	return cmd
}

func newMigrateUp(a *app) *cobra.Command {
	var from source
	var options migrationOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Make the tables, or bring them up to date",
		Long: `Makes the layout's tables and indexes, and the schema if it is missing. Running it
again does nothing. It looks first: what others have under the layout's names is
refused, before anything is made.

A stream (layout standard) has a shape for life: a ring of slots, each written for
--slot-length and emptied when its turn comes again, and shards, into which keys are divided.

With --adopt a queue table itself stays as it is and only what it lacks is added: the
indexes of the claim and of the dead events (built without blocking writers) and, where the
layout has one, the dead-letter table.

With --audit the tables of the audit log are made, beside the layout's, and nothing else.`,
		Example: `  outbox migrate up --from postgres://localhost/shop
  outbox migrate up --from postgres://localhost/shop --audit
  outbox migrate up --from postgres://localhost/shop --layout modkit`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, m, err := migrator(cmd.Context(), &from, options)
			if err != nil {
				return err
			}
			defer func() { _ = m.Close() }() // the work is committed by then
			steps, err := m.Up(cmd.Context())
			if printErr := a.printSteps(steps, "applied"); err == nil {
				err = printErr
			}
			switch {
			case errors.Is(err, migrate.ErrTableExists):
				return usagef("%w; %s", err, found.ifMade())
			case errors.Is(err, migrate.ErrElsewhere):
				return usagef("%w; name the schema with --schema: that one, or the one for a new table", err)
			case errors.Is(err, migrate.ErrNoTable):
				return usagef("%w: if the application makes it, run its migrations first; otherwise leave --adopt out", err)
			case err != nil:
				return classify(err, "make the schema first, or check --schema and --table")
			}
			// No migration restores what a person dropped.
			if err := verifyMade(cmd.Context(), &from, found, options); err != nil {
				return fmt.Errorf("all migrations are applied, but %s", message(err))
			}
			if !a.json && len(steps) == 0 {
				return a.printf("nothing to do: all migrations are applied\n")
			}
			return nil
		},
	}
	from.flags(cmd)
	cmd.Flags().BoolVar(&options.adopt, "adopt", false, "keep a table that exists already and add only what it lacks")
	options.auditFlag(cmd)
	options.shapeFlags(cmd)
	return cmd
}

func (o *migrationOptions) shapeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.shape.Slots, "slots", 0, fmt.Sprintf("slots of a stream's ring (default %d)", pgstream.DefaultSlots))
	f.DurationVar(&o.shape.SlotLength, "slot-length", 0,
		fmt.Sprintf("how long a slot of a stream is written (default %s)", pgstream.DefaultSlotLength))
	f.IntVar(&o.shape.Shards, "shards", 0, fmt.Sprintf("shards of a stream, a power of two (default %d)", pgstream.DefaultShards))
}

func newMigrateDown(a *app) *cobra.Command {
	var from source
	var options migrationOptions
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove what migrate up made",
		Long: `Undoes every migration of the layout. A table or stream that holds events is not dropped
without --force, and a table that was adopted is never dropped.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, m, err := migrator(cmd.Context(), &from, options)
			if err != nil {
				return err
			}
			defer func() { _ = m.Close() }() // the work is committed by then
			steps, err := m.Down(cmd.Context())
			if printErr := a.printSteps(steps, "undone"); err == nil {
				err = printErr
			}
			switch {
			case errors.Is(err, migrate.ErrNotEmpty):
				return usagef("%w; they would be deleted for good. Use --force if that is meant", err)
			case err == nil && !a.json && len(steps) == 0:
				return a.printf("nothing to do: no migration is applied\n")
			}
			return classify(err, "check --schema and --table")
		},
	}
	from.flags(cmd)
	cmd.Flags().BoolVar(&options.force, "force", false, "drop the table even if it holds events")
	options.auditFlag(cmd)
	return cmd
}

func newMigrateStatus(a *app) *cobra.Command {
	var from source
	var options migrationOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the migrations and whether they are applied",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, m, err := migrator(cmd.Context(), &from, options)
			if err != nil {
				return err
			}
			defer func() { _ = m.Close() }() // nothing was written
			steps, err := m.Status(cmd.Context())
			if err != nil {
				return classify(err, "check --schema and --table")
			}
			err = printEach(a, steps, func(step migrate.Step) string { return step.Name + "  " + stateOf(step) })
			if problem := verifyMade(cmd.Context(), &from, found, options); problem != nil {
				a.note(message(problem))
			}
			return err
		},
	}
	from.flags(cmd)
	options.auditFlag(cmd)
	return cmd
}

func (o *migrationOptions) auditFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.audit, "audit", false, "the tables of the audit log, instead of the layout's")
}

// auditMigration returns how to create the audit log's tables, beside those of an outbox.
func auditMigration(conn *pgx.ConnConfig, schema string, options migrationOptions) (migrate.Config, error) {
	if options.adopt || options.shape != (pgstream.Shape{}) {
		return migrate.Config{}, usagef("--audit makes the audit log's tables and nothing else; run it without --adopt, --slots, --slot-length and --shards")
	}
	files, err := audit.Migrations()
	return migrate.Config{Conn: conn, Layout: "log", Schema: schema, Table: audit.Table, Files: files, Force: options.force}, err
}

func migrator(ctx context.Context, from *source, options migrationOptions) (place, *migrate.Migrator, error) {
	found, conn, err := from.locate()
	if err != nil {
		return nil, nil, err
	}
	var config migrate.Config
	if options.audit {
		config, err = auditMigration(conn, found.schema(), options)
	} else {
		config, err = found.migration(ctx, conn, options)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := adapt(ctx, conn); err != nil {
		return nil, nil, err
	}
	m, err := migrate.New(ctx, config)
	return found, m, classify(err, "check --schema and --table")
}

// verifyMade compares the tables with what this program needs. It does not check the audit log.
func verifyMade(ctx context.Context, from *source, found place, options migrationOptions) error {
	if options.audit {
		return nil
	}
	conn, err := from.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing was written
	return found.verify(ctx, conn, false)
}

func (a *app) printSteps(steps []migrate.Step, done string) error {
	return printEach(a, steps, func(step migrate.Step) string { return step.Name + "  " + done })
}

func stateOf(step migrate.Step) string {
	switch {
	case step.AppliedAt != nil:
		return "applied " + step.AppliedAt.Format(time.RFC3339)
	case step.Adopted:
		return "adopted: its table was there before"
	}
	return "pending"
}
