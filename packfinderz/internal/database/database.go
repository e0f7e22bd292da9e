// Package database opens the backend's database for GORM.
package database

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// DB is GORM on the caller's pool.
type DB struct {
	*gorm.DB
	conn *sql.DB
}

// Open does not connect. GORM logs nothing: its errors are returned.
func Open(pool *pgxpool.Pool) (*DB, error) {
	conn := stdlib.OpenDBFromPool(pool)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: conn}), &gorm.Config{Logger: logger.Discard, DisableAutomaticPing: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up GORM: %w", err), conn.Close())
	}
	return &DB{db, conn}, nil
}

// Close gives the connections back to the pool.
func (db *DB) Close() error { return db.conn.Close() }
