package outboxgorm

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// ErrNotPGX is returned for a *gorm.DB that does not use pgx, as GORM's own PostgreSQL driver does.
var ErrNotPGX = errors.New("outbox: the *gorm.DB is not on pgx; open it with gorm.io/driver/postgres, or give the store a pool")

// Pool returns a pool for the database of a *gorm.DB, with the settings of its connections. Stores need it, because
// they hold sessions of their own. Pool borrows one of GORM's connections to read the settings. It does not copy
// hooks of a pool below GORM, such as one that fetches a new password for each connection. Close the pool in the
// end.
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
	defer func() { _ = conn.Close() }() // returns it to GORM
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
		config.ConnConfig = connection // with the program's other settings
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
