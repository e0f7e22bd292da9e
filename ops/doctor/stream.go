package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/pgstream"
)

// streamPatient is a stream with all its subscriptions.
type streamPatient struct{ stream pgstream.Stream }

func (t streamPatient) name() string {
	if t.stream.Schema == "" {
		return "layout " + pgstream.LayoutName
	}
	return fmt.Sprintf("layout %s, schema %s", pgstream.LayoutName, t.stream.Schema)
}

func (t streamPatient) at(table string) string { return sqlname.Qualified(t.stream.Schema, table) }
func (t streamPatient) wakes() string          { return t.at("outbox_stream") }
func (t streamPatient) schema() string         { return t.stream.Schema }

func (t streamPatient) relations() []relation {
	return []relation{
		{name: t.at("outbox_stream"), relay: []string{"SELECT"}, emit: []string{"INSERT", "SELECT (id)"}}, // INSERT ... RETURNING id
		{name: t.at("outbox_stream"), slots: true, relay: []string{"SELECT", "TRUNCATE"}},
		{name: t.at("outbox_stream_seq"), sequence: true, relay: []string{"SELECT"}, emit: []string{"USAGE"}},
		{name: t.at("outbox_subscriptions"), relay: []string{"SELECT"}},
		{name: t.at("outbox_settings"), relay: []string{"SELECT", "UPDATE"}},
		{name: t.at("outbox_history"), relay: []string{"SELECT"}},
		{name: t.at("outbox_doubts"), relay: []string{"SELECT", "INSERT"}},
		{name: t.at("outbox_shards"), churns: true, relay: []string{"SELECT", "UPDATE"}},
		{name: t.at("outbox_relays"), churns: true, relay: []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
		{name: t.at("outbox_parked"), churns: true, relay: []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
		{name: t.at("outbox_deliveries"), churns: true, relay: []string{"INSERT"}, purge: []string{"SELECT", "DELETE"}, operate: []string{"SELECT"}},
		{name: t.at("outbox_dedupe"), churns: true, purge: []string{"SELECT", "DELETE"}, emit: []string{"SELECT", "INSERT"}, operate: []string{"SELECT"}},
	}
}

func (t streamPatient) deaf() string {
	return "relays find new events only when they poll, and prepare no statements"
}

func (t streamPatient) restored(ctx context.Context, e *exam) error {
	var pgErr *pgconn.PgError
	err := t.stream.Verify(ctx, e.tx)
	switch {
	case errors.As(err, &pgErr):
		return err
	case errors.Is(err, pgstream.ErrRestored):
		return t.addRestored(ctx, e, err)
	case err != nil:
		e.add(Note, "not looked at: relays refuse the stream before", "See the check layout.")
	default:
		e.well("the cursors are those of this server")
	}
	return nil
}

// addRestored says what a restored stream holds, as far as that can be told.
func (t streamPatient) addRestored(ctx context.Context, e *exam, refused error) error {
	seen := "relays refuse to start: " + strings.TrimPrefix(refused.Error(), "outbox: ")
	loaded, err := t.stream.Loaded(ctx, e.tx)
	if err != nil {
		return err
	}
	if !loaded.Newest.IsZero() {
		seen += fmt.Sprintf("; the newest event that was copied in is of %s, and producers have written %s since",
			loaded.Newest.Format(time.RFC3339), plural(loaded.Written, "event"))
	}
	e.add(Problem, seen, fmt.Sprintf("See what would be published again: outbox repair%s --dry-run; then: outbox repair%[1]s", t.flags()))
	return nil
}

// flags are what names the stream on a command line.
func (t streamPatient) flags() string {
	if t.stream.Schema == "" {
		return ""
	}
	return " --schema " + shell(t.stream.Schema)
}

func (t streamPatient) relays(ctx context.Context, e *exam) error {
	list, err := t.stream.Waiting(ctx, e.tx)
	if err != nil {
		return err
	}
	relays := 0
	for i := range list {
		w := &list[i]
		relays += w.Relays
		waits := max(w.UnreadFor, w.DueFor)
		if waits <= e.config.Patience {
			continue
		}
		if w.Relays > 0 && w.Closed == w.Relays {
			e.add(Warning, fmt.Sprintf("subscription %s: the first event has waited for %s; %s there, waiting for the destination",
				w.Subscription, span(waits), count(int64(w.Relays), "relay is", "relays are")),
				"The relay's log and its /readyz say why the destination takes nothing. Publishing goes on by itself.")
			continue
		}
		if w.Relays > 0 {
			e.add(Note, fmt.Sprintf("subscription %s: the first event has waited for %s; %s at work",
				w.Subscription, span(waits), count(int64(w.Relays), "relay is", "relays are")),
				"If it does not get better, run more relays, or look at what the destination takes.")
			continue
		}
		e.add(Problem, fmt.Sprintf("subscription %s: the first event has waited for %s, and no relay serves it", w.Subscription, span(waits)),
			fmt.Sprintf("Run a relay: outbox relay%s --subscription %s. "+
				"If nobody wants its events any more: outbox subscriptions drop%s --force %s.",
				t.flags(), shell(w.Subscription), t.flags(), shell(w.Subscription)))
	}
	e.well("%s alive; no event has waited for longer than %s", count(int64(relays), "relay is", "relays are"), span(e.config.Patience))
	return nil
}

func (t streamPatient) stuck(ctx context.Context, e *exam) error {
	list, err := t.stream.Waiting(ctx, e.tx)
	if err != nil {
		return err
	}
	for i := range list {
		w := &list[i]
		if w.ExpiredFor > e.config.Patience {
			e.add(Problem, fmt.Sprintf("subscription %s: the lease of %s has been over for up to %s: a relay died, and no other took over",
				w.Subscription, plural(int64(w.Expired), "shard"), span(w.ExpiredFor)),
				fmt.Sprintf("Run a relay: outbox relay%s --subscription %s. It begins where the cursors are.", t.flags(), shell(w.Subscription)))
		}
	}
	e.well("no shard is held past its lease")
	return nil
}

func (t streamPatient) keys(ctx context.Context, e *exam) error {
	list, err := t.stream.Blocked(ctx, e.tx)
	if err != nil {
		return err
	}
	for i := range list {
		b := &list[i]
		behind := map[string]string{"dead": "a dead event", "held": "a held event", "retry": "an event that is being retried"}[b.State]
		seen := fmt.Sprintf("subscription %s: %s behind %s, with %s behind, the first for %s; such as key %q, event %s",
			b.Subscription, count(b.Keys, "key waits", "keys wait"), behind, plural(b.Waiting, "event"), span(b.Since), b.Key, b.ID)
		event := fmt.Sprintf("%s --subscription %s %s", t.flags(), shell(b.Subscription), b.ID)
		switch b.State {
		case "dead":
			e.add(Problem, seen, fmt.Sprintf("See what it failed with: outbox show%s; then: outbox retry%s", event, event))
		case "held":
			e.add(Warning, seen, "Somebody holds it. When the reason is gone: outbox release"+event)
		default:
			if b.Since > e.config.Patience {
				e.add(Note, seen+": "+b.LastError, "It is tried again by itself. If it never can succeed, the error says why.")
			}
		}
	}
	e.well("no key waits for a person")
	return nil
}

func (t streamPatient) retention(ctx context.Context, e *exam) error {
	ring, err := t.stream.Ring(ctx, e.tx)
	if err != nil {
		return err
	}
	for _, late := range ring.Slots {
		seen := fmt.Sprintf("slot %d was not emptied in its turn: its oldest event is %s old, and the ring turns in %s",
			late.Slot, span(late.Age), span(late.Turn))
		if len(late.Behind) == 0 {
			e.add(Warning, seen+"; every subscription has settled it, and no relay was there to empty it",
				"Run a relay, or: outbox purge"+t.flags()+" --retention "+short(late.Turn))
			continue
		}
		e.add(Warning, seen+"; not settled by "+strings.Join(late.Behind, ", "),
			fmt.Sprintf("Nothing is lost, but the table grows. Run a relay for %s, or drop it, with the events that it has not delivered: outbox subscriptions drop%s --force NAME",
				strings.Join(late.Behind, " and "), t.flags()))
	}
	for _, beside := range []struct {
		what string
		age  time.Duration
	}{{"deliveries", ring.Deliveries}, {"dedupe keys", ring.Dedupe}} {
		if beside.age > e.config.Retention {
			e.add(Warning, fmt.Sprintf("the oldest %s are %s old, more than %s", beside.what, span(beside.age), span(e.config.Retention)),
				fmt.Sprintf("Run the relay with --retention %s, or: outbox purge%s --retention %[1]s", short(e.config.Retention), t.flags()))
		}
	}
	e.well("every slot was emptied in its turn")
	return nil
}
