//go:build tune
package peers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/packfinderz/outbox/internal/pgserver"
)

func TestMain(m *testing.M) { pgserver.RunKeeperIfAsked(); os.Exit(m.Run()) }

var payload = []byte(`{"data":"`+strings.Repeat("x", 308-11)+`"}`)

var n = 0
var srv *pgserver.Server

func fresh(t *testing.T) string {
	if srv == nil {
		var err error
		srv, err = pgserver.Start(context.Background(), pgserver.Config{Settings: map[string]string{"fsync":"on","synchronous_commit":"on","shared_buffers":"256MB","max_wal_size":"4GB"}})
		if err != nil { t.Fatal(err) }
	}
	conn, err := pgx.Connect(context.Background(), srv.URL("postgres"))
	if err != nil { t.Fatal(err) }
	defer conn.Close(context.Background())
	if n > 0 { if _, err := conn.Exec(context.Background(), fmt.Sprintf("DROP DATABASE p%d", n)); err != nil { t.Fatal(err) } }
	n++
	if _, err := conn.Exec(context.Background(), fmt.Sprintf("CREATE DATABASE p%d", n)); err != nil { t.Fatal(err) }
	return srv.URL(fmt.Sprintf("p%d", n))
}


var res = map[string][]float64{}
var order []string

func one(t *testing.T, p Peer, label string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	const N = 100000
	d, err := p.Run(ctx, fresh(t), Workload{Events: N, Payload: payload})
	if err != nil { fmt.Println(p.Name, label, err) }
	k := p.Name+" | "+label
	if res[k] == nil { order = append(order, k) }
	res[k] = append(res[k], N/d.Seconds())
}

func TestTune(t *testing.T) {
	if len(payload) != 308 { t.Fatal(len(payload)) }
	defer func(){ if srv != nil { srv.Stop() } }()
	defer func(){ for _, k := range order { v := res[k]; slices.Sort(v); fmt.Printf("%-70s median %7.0f best %7.0f %7.0f\n", k, v[len(v)/2], v[len(v)-1], v) } }()
	what := os.Getenv("WHAT")
	rounds, _ := strconv.Atoi(os.Getenv("ROUNDS"))
	for range rounds {
	if strings.Contains(what, "river") {
		for _, wk := range []int{500, 1000, 2000, 5000} {
			RiverWorkers = wk
			one(t, riverPeer(), fmt.Sprintf("workers %d", wk))
		}
		RiverWorkers = 2000
		RiverTimeout = -1
		one(t, riverPeer(), "2000, no job timeout")
		RiverTimeout = 0
		RiverPoll = time.Second
		one(t, riverPeer(), "2000, poll 1s")
		RiverCooldown = 20*time.Millisecond
		one(t, riverPeer(), "2000, poll 1s cooldown 20ms")
		RiverPoll, RiverCooldown = time.Millisecond, time.Millisecond
		RiverPollOnly = true
		one(t, riverPeer(), "2000, pollonly")
		RiverPollOnly = false
	}
	if strings.Contains(what, "wm") {
		for _, p := range []Peer{watermillOffsets(), watermillQueue()} {
			one(t, p, "base")
			WMDeadline = 30*time.Second
			one(t, p, "deadline 30s")
			WMDeadline = 0
			WMSettle = false
			one(t, p, "no vacuum")
			WMSettle = true
			WMBytea = true
			one(t, p, "bytea")
			WMBytea = false
			WMBatch = 100
			one(t, p, "batch 100")
			WMBatch = 5000
			one(t, p, "batch 5000")
			WMBatch = 10000
			one(t, p, "batch 10000")
			WMBatch = 1000
		}
	}
	if strings.Contains(what, "tx1") {
		WMInsert = 1
			one(t, watermillOffsets(), "insert 1 per tx")
		WMInsert = 10000
			one(t, watermillOffsets(), "insert 10000 per tx")
		WMInsert = 1000
			one(t, watermillOffsets(), "base")
	}
	}
}
