package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox/layouts/survey"
)

// survey examines the database before anything is written. With Adopt, it leaves out the migrations of tables that
// others created.
func (m *Migrator) survey(ctx context.Context) error {
	plan, err := m.plan(ctx)
	switch {
	case !m.config.Adopt && len(plan.Kept) > 0:
		return fmt.Errorf("%w: %q", ErrTableExists, plan.Kept[0].Name)
	case err != nil:
		return err
	case !m.config.Adopt:
		return nil
	}
	if len(plan.Kept) == 0 {
		exists, err := m.exists(ctx, m.config.Table)
		if err != nil {
			return err
		}
		if !exists {
			return ErrNoTable
		}
	}
	for _, statement := range plan.Types {
		if _, err := m.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("make the types of the layout: %w", err)
		}
	}
	return m.prepare(plan.Versions()...)
}

func (m *Migrator) plan(ctx context.Context) (*survey.Plan, error) {
	plan := &survey.Plan{}
	err := m.withConn(ctx, func(conn *pgx.Conn) (err error) {
		plan, err = m.set().NewPlan(ctx, conn, *m.config.Queue)
		return err
	})
	return plan, err
}

func (m *Migrator) set() survey.Set {
	return survey.Set{Files: m.config.Files, Versions: m.versions}
}

func (m *Migrator) withConn(ctx context.Context, look func(*pgx.Conn) error) (err error) {
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.Raw(func(driver any) error {
		return look(driver.(*stdlib.Conn).Conn()) //nolint:forcetypeassert // New opened it
	})
}
