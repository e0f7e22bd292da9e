package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox/layouts/survey"
)

// survey looks at the database before anything is written. With Adopt, tables that somebody else made are left out of the migrations.
func (m *Migrator) survey(ctx context.Context) error {
	plan, err := m.plan(ctx)
	switch {
	case !m.config.Adopt && len(plan.Kept) > 0:
		return fmt.Errorf("%w: %s", ErrTableExists, plan.Kept[0])
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

func (m *Migrator) plan(ctx context.Context) (plan *survey.Plan, err error) {
	plan = &survey.Plan{}
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return plan, fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	err = conn.Raw(func(driver any) error {
		plan, err = survey.Set{Files: m.config.Files, Versions: m.versions}.
			NewPlan(ctx, driver.(*stdlib.Conn).Conn(), *m.config.Queue) //nolint:forcetypeassert // New opened it
		return err
	})
	return plan, err
}
