package outboxtest_test

import (
	"testing"

	"github.com/packfinderz/outbox/outboxtest/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }
