package outboxgorm_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	// GORM's cache of prepared statements has a goroutine that never ends.
	pgtest.Main(m, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}
