package outboxgorm

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// ErrNotPGX is returned for a *gorm.DB that is not on the driver pgx, which GORM's own PostgreSQL driver is on.
var ErrNotPGX = errors.New("outbox: the *gorm.DB is not on pgx; open it with gorm.io/driver/postgres, or give the store a pool")

// Pool makes a pool on the database that a *gorm.DB is on, with the settings of its connections, for the stores: they
// hold sessions of their own. It asks for one connection of GORM's to see them. What a pool below GORM does in hooks,
// such as fetching a new password for each connection, is not taken over. Close it in the end.
func Pool(ctx context.Context, db *gorm.DB) (*pgxpool.Pool, error) {
	if unopened(db) {
		return nil, errNoDB
	}
	connections, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("outbox: find GORM's connections: %w", err)
	}
	conn, err := connections.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("outbox: ask GORM for a connection: %w", err)
	}
	defer func() { _ = conn.Close() }() // it goes back to GORM
	var config *pgxpool.Config
	err = conn.Raw(func(driver any) error {
		own, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("%w (it is on %T)", ErrNotPGX, driver)
		}
		connection := own.Conn().Config()
		var err error
		if config, err = pgxpool.ParseConfig(connection.ConnString()); err != nil {
			return fmt.Errorf("outbox: read the settings of GORM's connection: %w", err)
		}
		config.ConnConfig = connection // with what a program has set besides
		return nil
	})
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("outbox: make a pool on GORM's database: %w", err)
	}
	return pool, nil
}
