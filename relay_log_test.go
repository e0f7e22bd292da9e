package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/logtest"
)

// logged runs a relay that logs JSON, for an hour of the bubble's clock.
func logged(t *testing.T, config outbox.RelayConfig) *logtest.Log {
	t.Helper()
	logs := &logtest.Log{}
	config.Logger, config.Poll = slog.New(slog.NewJSONHandler(logs, nil)), calm
	relay, err := outbox.NewRelay(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Hour)
	outboxtest.Stop(t, relay)
	return logs
}

// wantLogged fails unless the log has so many lines with a pattern.
func wantLogged(t *testing.T, logs *logtest.Log, pattern string, want int) {
	t.Helper()
	if n := len(regexp.MustCompile(pattern).FindAllString(logs.Text(), -1)); n != want {
		t.Errorf("%d lines with %s, want %d:\n%s", n, pattern, want, logs.Text())
	}
}

// TestFailuresInTheLog lets twenty events fail at once: five are logged, the others counted.
func TestFailuresInTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs := logged(t, outbox.RelayConfig{
			Store: newMemStore(many(20)...), Retry: outbox.RetryPolicy{Base: 4 * time.Hour, Max: 4 * time.Hour},
			Publisher: &scripted{answer: func(outbox.Message) error { return errors.New("no") }},
		})
		wantLogged(t, logs, `"WARN","msg":"event failed".*"attempt":1,"topic":"orders","error":"no","next_in":"[1-4]h[0-9hms.]+"`, 5)
		wantLogged(t, logs, `"msg":"event failed"`, 5)
		wantLogged(t, logs, `"WARN","msg":"more attempts failed".*"attempts":15}`, 1)
	})
}

// TestOutageInTheLog has an outage with many events: one line when it begins, one when it is over.
func TestOutageInTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		logs := logged(t, outbox.RelayConfig{
			Store: newMemStore(many(20)...), Publisher: &scripted{answer: func(outbox.Message) error {
				if time.Since(began) < time.Minute {
					return outbox.Unavailable(errors.New("away"))
				}
				return nil
			}},
		})
		wantLogged(t, logs, `"WARN","msg":"the route is closed.*"route":"destination","error":"away"}`, 1)
		wantLogged(t, logs, `"INFO","msg":"the route is open again.*"route":"destination","closed_for":"1m[0-9.]+s","given_back":[0-9]+}`, 1)
		wantLogged(t, logs, `"msg":"event `, 0)
	})
}

// TestFieldsInTheLog has an event with a topic and without an aggregate. A line has the fields that the event has;
// a line per attempt has all fields.
func TestFieldsInTheLog(t *testing.T) {
	t.Parallel()
	for aggregate, level := range map[string]slog.Leveler{`"event_type":"[a-z_]*",`: nil, `"aggregate_type":"","aggregate_id":"",`: slog.LevelInfo} {
		synctest.Test(t, func(t *testing.T) {
			event := many(1)
			event[0].Topic, event[0].AggregateType, event[0].AggregateID = "orders", "", ""
			logs := logged(t, outbox.RelayConfig{
				Store: newMemStore(event...), AttemptLevel: level, Retry: outbox.RetryPolicy{Base: 4 * time.Hour, Max: 4 * time.Hour},
				Publisher: &scripted{answer: func(outbox.Message) error { return errors.New("no") }},
			})
			wantLogged(t, logs, `"msg":"event failed".*`+aggregate+`"attempt":1,"topic":"orders","error":"no"`, 1)
		})
	}
}

// acking is a publisher that reports an acknowledgement before the call is over. In between it calls meanwhile.
type acking struct {
	scripted
	meanwhile func()
}

func (p *acking) PublishAcked(ctx context.Context, messages []outbox.Message, acked func(int)) []error {
	errs := p.Publish(ctx, messages)
	for i, err := range errs {
		if err == nil {
			acked(i)
		}
	}
	p.meanwhile()
	return errs
}

// TestAcksInTheLog has a publisher that reports acknowledgements one by one: each is logged while the rest of the
// batch is under way, one line per attempt, with all that finding a duplicate needs.
func TestAcksInTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs := &logtest.Log{}
		events := many(3)
		early := 0
		publisher := &acking{meanwhile: func() {
			if early == 0 {
				early = strings.Count(logs.Text(), `"msg":"event delivered"`)
			}
		}}
		publisher.answer = func(m outbox.Message) error {
			if m.ID == events[1].ID {
				return outbox.Terminal(errors.New("no"))
			}
			return nil
		}
		relay, err := outbox.NewRelay(outbox.RelayConfig{
			Store: newMemStore(events...), Publisher: publisher, AttemptLevel: slog.LevelInfo, Poll: calm,
			Logger: slog.New(slog.NewJSONHandler(logs, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := relay.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		outboxtest.Stop(t, relay)
		if early != 2 {
			t.Errorf("%d lines of 2 deliveries were there before the batch was over", early)
		}
		wantLogged(t, logs, `"INFO","msg":"event delivered".*"event_id":"[-0-9a-f]+","event_type":"[^"]*","aggregate_type":"[^"]*","aggregate_id":"[^"]*","attempt":1,.*"outcome":"delivered"`, 2)
		wantLogged(t, logs, `"msg":"event delivered"`, 2)
		wantLogged(t, logs, `"msg":"event dead".*"attempt":1,.*"outcome":"dead"`, 1)
	})
}
