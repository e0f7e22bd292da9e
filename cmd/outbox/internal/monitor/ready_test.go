package monitor_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/monitor"
	"github.com/packfinderz/outbox/pgstore"
)

// broken is a relay whose destination is open, and whose store settles nothing.
type broken struct{}

func (broken) Routes() []outbox.RouteStatus { return nil }
func (broken) StoreError() error            { return errors.New("settle fails since noon") }

// TestReadyStore has a database that answers, and a relay that cannot work on it.
func TestReadyStore(t *testing.T) {
	t.Parallel()
	pool := table(t)
	status, body := get(t, monitor.New(open(t, pool, pgstore.Config{})), pool, broken{}, "/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "settle fails") {
		t.Errorf("/readyz is %d: %s", status, body)
	}
}
