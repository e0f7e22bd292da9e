package outagetest_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestMemory runs the suite on the simplest of destinations.
func TestMemory(t *testing.T) {
	t.Parallel()
	outagetest.Run(t, func(testing.TB) outagetest.Destination {
		broker := &outboxtest.Broker{}
		return outagetest.Destination{
			Publisher: func(testing.TB) outbox.Publisher { return broker },
			Received: func(testing.TB) (ids []uuid.UUID) {
				for _, m := range broker.Received() {
					ids = append(ids, m.ID)
				}
				return ids
			},
			OtherTopic: "payments",
			Faults: []outagetest.Fault{
				{
					Name:  "refused",
					Begin: func(testing.TB) { broker.SetDown(true) },
					End:   func(testing.TB) { broker.SetDown(false) },
				},
				{
					Name: "topic deleted", Topic: true,
					Begin: func(testing.TB) {
						broker.FailWith(func(m outbox.Message) error {
							if m.Topic == "payments" {
								return nil
							}
							return outbox.TopicMissing(errors.New("no such topic"))
						})
					},
					End: func(testing.TB) { broker.FailWith(nil) },
				},
			},
		}
	}, "refused", "topic deleted")
}
