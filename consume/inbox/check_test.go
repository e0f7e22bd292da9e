package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/consume/inbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCheck(t *testing.T) {
	t.Parallel()
	event := uuid.New()
	for _, c := range []struct {
		consumer string
		event    uuid.UUID
		want     string // a part of the error; empty for none
	}{
		{"billing", event, ""},
		{"a:b c/d-\u00e9", event, ""},
		{strings.Repeat("n", inbox.MaxConsumer), event, ""},
		{strings.Repeat("n", inbox.MaxConsumer+1), event, "201 bytes"},
		{"", event, "no name"},
		{"a\x00b", event, "control"},
		{"a\nb", event, "control"},
		{"a\u0085b", event, "control"},
		{"\xff", event, "UTF-8"},
		{"billing", uuid.Nil, "no id"},
	} {
		err := inbox.Check(c.consumer, c.event)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %s: %v, want %q", c.consumer, c.event, err, c.want)
		}
		if c.want == "" {
			continue
		}
		ran, err := inbox.Handle(t.Context(), unreachable{}, c.consumer, c.event, func(context.Context) error { return nil })
		if ran || err == nil || errors.Is(err, errAway) {
			t.Errorf("handle %q, %s: %t, %v", c.consumer, c.event, ran, err)
		}
	}
}

func TestTTL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ttl  inbox.TTL
		want string
	}{
		{inbox.TTL{}, ""},
		{inbox.TTL{Horizon: inbox.DefaultDone}, ""},
		{inbox.TTL{Processing: time.Second, Done: time.Second}, ""},
		{inbox.TTL{Horizon: inbox.DefaultDone + 1}, "delivered again"},
		{inbox.TTL{Done: 7 * 24 * time.Hour, Horizon: 8 * 24 * time.Hour}, "delivered again"},
		{inbox.TTL{Horizon: -1}, "horizon"},
		{inbox.TTL{Processing: time.Millisecond}, "a second or more"},
		{inbox.TTL{Processing: -time.Second}, "a second or more"},
		{inbox.TTL{Processing: time.Hour, Done: time.Minute}, "less than the processing TTL"},
		{inbox.TTL{Done: -time.Hour}, "less than the processing TTL"},
	} {
		ttl, err := c.ttl.WithDefaults()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.ttl, err, c.want)
		}
		if err == nil && (ttl.Processing == 0 || ttl.Done == 0) {
			t.Errorf("%+v has no defaults", ttl)
		}
	}
}
