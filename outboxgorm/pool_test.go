package outboxgorm_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxgorm"
)

// TestPool checks that the pool uses GORM's database and the settings of its connections, but none of them.
func TestPool(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.URL(t)+"&application_name=shop", gorm.Config{})
	pool, err := outboxgorm.Pool(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	const who = "SELECT current_database() || current_setting('application_name'), pg_backend_pid()"
	var ours, theirs string
	var pid, other int
	if err := pool.QueryRow(t.Context(), who).Scan(&ours, &pid); err != nil {
		t.Fatal(err)
	}
	if err := db.Raw(who).Row().Scan(&theirs, &other); err != nil {
		t.Fatal(err)
	}
	if ours != theirs || pid == other {
		t.Errorf("the pool is %s (%d), GORM %s (%d)", ours, pid, theirs, other)
	}
}

// foreign is a driver that is not pgx.
type foreign struct{ driver.Conn }

func (foreign) Close() error { return nil }

type foreignDriver struct{}

func (foreignDriver) Open(string) (driver.Conn, error) { return foreign{}, nil }

func TestPoolRefuses(t *testing.T) {
	t.Parallel()
	if _, err := outboxgorm.Pool(t.Context(), nil); err == nil {
		t.Error("no *gorm.DB: a pool")
	}
	sql.Register("foreign", foreignDriver{})
	conn, err := sql.Open("foreign", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it has none
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: conn}), &gorm.Config{DisableAutomaticPing: true, Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outboxgorm.Pool(t.Context(), db); !errors.Is(err, outboxgorm.ErrNotPGX) {
		t.Errorf("another driver: %v", err)
	}
}
