package tablecheck_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
