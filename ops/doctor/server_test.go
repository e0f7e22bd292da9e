package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstream"
)

// TestHealthy examines every layout on a server as PostgreSQL comes, and then makes the server
// one that loses events.
func TestHealthy(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"})
	address := server.URL("postgres")
	pool := pgtest.Connect(t, address)
	patients := []*patient{newStream(t, pool, pgstream.Shape{})}
	for _, shipped := range shipped.All() {
		patients = append(patients, newTable(t, pool, shipped.Layout.Name))
	}
	for _, p := range patients {
		report := p.examine(t)
		if len(report.Findings) != len(doctor.Checks()) || report.Worst() != doctor.OK {
			t.Errorf("%s: %d findings of %d checks, the worst %s", report.Target, len(report.Findings), len(doctor.Checks()), report.Worst())
		}
		for i, f := range report.Findings {
			if f.Check != doctor.Checks()[i].Name || f.Severity != doctor.OK || f.Seen == "" || f.Do != "" {
				t.Errorf("%s: %+v", report.Target, f)
			}
		}
	}
	unsafeSettings(t, patients[0], address)
}

// unsafeSettings turns off what makes a server keep its promises, and on again as the findings
// say.
func unsafeSettings(t *testing.T, p *patient, address string) {
	t.Helper()
	for _, setting := range []struct {
		name, check string
		severity    doctor.Severity
	}{{"fsync", "durability", doctor.Problem}, {"full_page_writes", "durability", doctor.Problem}, {"autovacuum", "dead-rows", doctor.Warning}} {
		name := setting.name
		pgtest.Exec(t, p.pool, `ALTER SYSTEM SET `+name+` = off`)
		pgtest.Exec(t, p.pool, `SELECT pg_reload_conf()`)
		awaitSetting(t, address, name, "off")
		found := p.finds(t, setting.check, setting.severity, name+" is off")
		for sql := range strings.SplitSeq(found.Do, "; ") { // ALTER SYSTEM wants to be alone
			pgtest.Exec(t, p.pool, sql)
		}
		awaitSetting(t, address, name, "on")
	}
	pgtest.Exec(t, p.pool, `ALTER DATABASE postgres SET synchronous_commit = off`)
	p.pool = pgtest.Connect(t, address)
	pgtest.Exec(t, p.pool, p.finds(t, "durability", doctor.Warning, "synchronous_commit is off").Do)
	p.pool = pgtest.Connect(t, address)
	p.isWell(t, "durability")
	p.pool = pgtest.Connect(t, address+"&options=-csynchronous_commit%3Doff")
	p.finds(t, "durability", doctor.Warning, "Take synchronous_commit out of the connection's URL")
}

// TestClock is the one fault that is injected: this machine has one clock.
func TestClock(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{})
	for direction, off := range map[string]time.Duration{"ahead of": time.Hour, "behind": -time.Hour} {
		p.config = doctor.Config{}.WithClock(func() time.Time { return time.Now().Add(off) })
		found := p.finds(t, "clock", doctor.Warning, direction, "NTP")
		if !strings.Contains(found.Seen, "clock is 1h ") && !strings.Contains(found.Seen, "clock is 59m59") {
			t.Errorf("an hour is %q", found.Seen)
		}
	}
	p.config = doctor.Config{}.WithClock(func() time.Time { return time.Now().Add(time.Second) })
	p.isWell(t, "clock")
}

// TestVersions cannot be provoked with the one server that is installed.
func TestVersions(t *testing.T) {
	t.Parallel()
	for number, words := range map[int]string{
		130020: "needs 14", 140003: "leave rows out", 140004: "", 150012: "", 170002: "",
	} {
		seen, do := doctor.JudgeVersion(number, "x")
		if (seen == "") != (words == "") || !strings.Contains(seen, words) || (seen != "") != (do != "") {
			t.Errorf("%d: %q, %q; want %q", number, seen, do, words)
		}
	}
}
