package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstream"
)

// patient is an outbox on a database of the test's own.
type patient struct {
	pool   *pgxpool.Pool
	place  ops.Place
	config doctor.Config
}

// impatient reports at once what is otherwise reported after minutes.
var impatient = doctor.Config{Patience: time.Millisecond, LongTransaction: time.Millisecond}

// newTable is a shipped layout's table on a database.
func newTable(t *testing.T, pool *pgxpool.Pool, name string) *patient {
	t.Helper()
	shipped, _ := shipped.Find(name)
	files, err := shipped.Migrations(shipped.Layout)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "", files)
	return &patient{pool: pool, place: ops.Place{Layout: &shipped.Layout}}
}

// on is the outbox as somebody's connections reach it.
func (p *patient) on(t *testing.T, pool *pgxpool.Pool) *ops.Outbox {
	t.Helper()
	var o *ops.Outbox
	var err error
	if p.place.Stream != nil {
		o, err = ops.Stream(pool, *p.place.Stream, "")
	} else {
		o, err = ops.Table(pool, *p.place.Layout)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// newStream is a stream on a database.
func newStream(t *testing.T, pool *pgxpool.Pool, shape pgstream.Shape) *patient {
	t.Helper()
	files, err := pgstream.Migrations(shape)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "", files)
	return &patient{pool: pool, place: ops.Place{Stream: &pgstream.Stream{}}}
}

// examine makes these checks, or all.
func (p *patient) examine(t *testing.T, checks ...string) doctor.Report {
	t.Helper()
	config := p.config
	config.Checks = checks
	report, err := doctor.Examine(t.Context(), p.on(t, p.pool), config)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// finds fails unless a check has a finding of a severity with all of these words; it returns
// the finding.
func (p *patient) finds(t *testing.T, check string, severity doctor.Severity, words ...string) doctor.Finding {
	t.Helper()
	report := p.examine(t, check)
	for _, f := range report.Findings {
		if f.Check == check && f.Severity == severity && hasAll(f.Seen+"\n"+f.Do, words) {
			return f
		}
	}
	t.Fatalf("no %s of check %s has the words %q; its findings are %+v", severity, check, words, report.Findings)
	return doctor.Finding{}
}

func hasAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// isWell fails unless a check found nothing.
func (p *patient) isWell(t *testing.T, check string) {
	t.Helper()
	if list := p.examine(t, check).Findings; len(list) != 1 || list[0].Severity != doctor.OK {
		t.Errorf("check %s: %+v; want nothing", check, list)
	}
}

// background is for cleaning up, when the test's context has ended.
func background() context.Context { return context.Background() }
