package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// The older name counts where the newer one is not set.
func TestIdempotencyTTL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values map[string]string
		want   time.Duration
		bad    string
	}{
		{nil, 720 * time.Hour, ""},
		{map[string]string{ttlName: "48h"}, 48 * time.Hour, ""},
		{map[string]string{hoursName: "168"}, 168 * time.Hour, ""},
		{map[string]string{ttlName: "", hoursName: "168"}, 168 * time.Hour, ""},
		{map[string]string{ttlName: "48h", hoursName: "168"}, 48 * time.Hour, ""},
		{map[string]string{ttlName: "48h", hoursName: "nonsense"}, 48 * time.Hour, ""},
		{map[string]string{ttlName: "48"}, 720 * time.Hour, ttlName},
		{map[string]string{ttlName: "-1h"}, 720 * time.Hour, ttlName},
		{map[string]string{hoursName: "a week"}, 720 * time.Hour, hoursName},
		{map[string]string{hoursName: "0"}, 720 * time.Hour, hoursName},
		{map[string]string{hoursName: "99999999"}, 720 * time.Hour, hoursName},
	} {
		r := env.NewReader(backendtest.Lookup(test.values))
		got := idempotencyTTL(r)
		if err := r.Err(); got != test.want || errors.Is(err, env.ErrUsage) != (test.bad != "") || err != nil && !strings.Contains(err.Error(), test.bad+" is ") {
			t.Errorf("%v gives %s, %v", test.values, got, err)
		}
	}
}
