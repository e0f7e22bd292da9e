package consumer

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// silence is how long a cluster must be unheard of to count as unavailable. A member of a group hears from it every
// three seconds at least.
const silence = 5 * time.Second

// watch logs when the cluster becomes unavailable and when it is back. The client itself retries silently.
type watch struct {
	log *slog.Logger

	mu   sync.Mutex
	good time.Time // when it was last heard of
	away bool
}

var (
	_ kgo.HookBrokerConnect = (*watch)(nil)
	_ kgo.HookBrokerRead    = (*watch)(nil)
)

// OnBrokerConnect records a connection that could not be made.
func (w *watch) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && !w.away && time.Since(w.good) > silence {
		w.away = true
		w.log.Warn("Kafka cannot be reached; waiting", "error", err)
	}
}

// OnBrokerRead records a connection that works.
func (w *watch) OnBrokerRead(_ kgo.BrokerMetadata, _ int16, _ int, _, _ time.Duration, err error) {
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.good = time.Now()
	if w.away {
		w.away = false
		w.log.Info("Kafka answers again")
	}
}
