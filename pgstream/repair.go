package pgstream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/pgsession"
)

// RepairOptions adjust a repair. The zero value repairs everything.
type RepairOptions struct {
	// Subscriptions are those that may go on. The others are put right as well, but relays refuse
	// them until they are repaired, too. Default all.
	Subscriptions []string
	// DryRun counts only, and changes nothing.
	DryRun bool
}

// leaves reports whether a subscription is refused still after the repair.
func (o *RepairOptions) leaves(subscription string) bool {
	return len(o.Subscriptions) > 0 && !slices.Contains(o.Subscriptions, subscription)
}

// Repaired is what a repair did, or would do.
type Repaired struct {
	// Events is how many unread events were parked, due now, over all subscriptions.
	Events int64 `json:"events"`
	// Subscriptions is how many subscriptions begin anew.
	Subscriptions int `json:"subscriptions"`
	// BySubscription are the subscriptions one by one, by name.
	BySubscription []RepairedSubscription `json:"bySubscription,omitempty"`
	// DryRun is set when nothing was changed.
	DryRun bool `json:"dryRun,omitempty"`
	// Owner is the role that has to do it, after a dry run by another.
	Owner string `json:"owner,omitempty"`
}

// RepairedSubscription is what a repair parked for one subscription.
type RepairedSubscription struct {
	// Name is the subscription's name.
	Name string `json:"name"`
	// Unread is how many events it certainly has not received.
	Unread int64 `json:"unread"`
	// Doubtful is how many events it may have received already: it receives them again.
	Doubtful int64 `json:"doubtful"`
	// Cursors is how many cursors it lacked. They begin at the oldest event that is kept, and read Reread
	// events, which are not parked.
	Cursors int `json:"cursors,omitempty"`
	// Reread is how many events these read.
	Reread int64 `json:"reread,omitempty"`
	// Waited is set when an earlier repair had put it right already, and it only waited to go on.
	Waited bool `json:"waited,omitempty"`
	// Waits is set when relays refuse it until it is repaired, too.
	Waits bool `json:"waits,omitempty"`
}

// Repair makes a stream usable that was restored from a dump, or whose server or sequence went back: the
// xids and numbers of its rows and the snapshots of its cursors are those of another history. Events
// that a subscription had not passed, and all of which that is not certain, are parked for it, due now
// and in order; every subscription goes on from there. On a stream that needs no repair it does nothing.
//
// Producers may write meanwhile: they do not wait, and what they commit is neither lost nor doubled.
// Relays that run all the same lose their shards, by the fence, before anything moves.
func (s Stream) Repair(ctx context.Context, pool *pgxpool.Pool, options RepairOptions) (Repaired, error) {
	if err := s.CheckSchema(ctx, pool); err != nil {
		return Repaired{}, err
	}
	owner, owned, err := s.owner(ctx, pool)
	switch {
	case err != nil:
		return Repaired{}, err
	case !owned && !options.DryRun:
		return Repaired{}, fmt.Errorf("outbox: %w: the role %q", ErrNotOwner, owner)
	}
	for _, name := range options.Subscriptions {
		if _, err := s.FindSubscription(ctx, pool, name); err != nil {
			return Repaired{}, err
		}
	}
	// First without a lock, which would wait for relays: most streams need no repair.
	h, err := s.look(ctx, pool)
	if err == nil && owned && h.damage() == nil { // what the cursors rely on says nothing after a restore
		if err = s.checkCursors(ctx, pgsession.Borrow(pool), ""); errors.Is(err, ErrRestored) {
			h, err = s.look(ctx, pool)
		}
	}
	if err != nil {
		return Repaired{}, err
	}
	if problem := h.damage(); problem == nil || !errors.Is(problem, ErrRestored) {
		return Repaired{}, problem
	}
	// The sequence is raised by every repair, also by one that does not come to its end: what can be seen
	// now is noted before.
	if err := s.note(ctx, pool, &h); err != nil {
		return Repaired{}, err
	}
	var done Repaired
	access := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	if options.DryRun {
		access = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	}
	err = pgx.BeginTxFunc(ctx, pool, access, func(tx pgx.Tx) error {
		done, err = s.repair(ctx, tx, options)
		return err
	})
	if err != nil {
		return Repaired{}, fmt.Errorf("outbox: repair the stream: %w", err)
	}
	if !owned {
		done.Owner = owner
	}
	return done, nil
}

// ErrNotOwner means that the role may not write all that a repair writes.
var ErrNotOwner = errors.New("only the owner of a stream's tables can repair it")

// owner is the role that has the tables, and whether this session is of it.
func (s Stream) owner(ctx context.Context, db Querier) (owner string, owned bool, err error) {
	err = db.QueryRow(ctx, s.names(`SELECT pg_get_userbyid(relowner), pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = {'stream'}`)).
		Scan(&owner, &owned)
	if err != nil {
		return "", false, fmt.Errorf("outbox: look for the stream's owner: %w", err)
	}
	return owner, owned, nil
}

// damage is why a repair is needed, or cannot be made.
func (h *health) damage() error {
	if err := h.refusal(""); err != nil {
		return err
	}
	if refused := append(slices.Clone(h.strange), h.partial...); len(refused) > 0 {
		return h.refusal(refused[0])
	}
	return nil
}

// repair does it, in one transaction.
func (s Stream) repair(ctx context.Context, tx pgx.Tx, options RepairOptions) (done Repaired, err error) {
	if _, err := tx.Exec(ctx, noCompileSQL); err != nil {
		return done, err
	}
	if !options.DryRun {
		if _, err := tx.Exec(ctx, s.names(`LOCK TABLE {shards} IN EXCLUSIVE MODE`)); err != nil {
			return done, err
		}
	}
	h, err := s.look(ctx, tx)
	if err != nil || h.damage() == nil {
		return done, err // somebody else has repaired it meanwhile
	}
	var history *[16]byte // nil if the server has none that can be believed
	if h.stamped {
		history = (*[16]byte)(&h.history)
	}
	whole := h.refusal("") != nil
	if options.DryRun {
		if done, err = s.readRepaired(ctx, tx, options, classifySQL+countUnreadSQL, history, whole); err != nil {
			return done, err
		}
		return done, s.countMissing(ctx, tx, &done, options)
	}
	if whole {
		var highest int64
		if err := tx.QueryRow(ctx, s.names(highestSQL)).Scan(&highest); err != nil {
			return done, err
		}
		if _, err := tx.Exec(ctx, s.names(raiseSequenceSQL), highest); err != nil {
			return done, err
		}
	}
	if done, err = s.readRepaired(ctx, tx, options, repairSQL, history, whole, options.Subscriptions); err != nil {
		return done, err
	}
	if err := s.countMissing(ctx, tx, &done, options); err != nil {
		return done, err
	}
	if _, err := tx.Exec(ctx, s.names(makeMissingSQL), options.Subscriptions); err != nil {
		return done, err
	}
	return done, s.goOn(ctx, tx, &h, options)
}

// readRepaired runs a statement that counts by subscription.
func (s Stream) readRepaired(ctx context.Context, tx pgx.Tx, options RepairOptions, sql string, args ...any) (done Repaired, err error) {
	done.DryRun = options.DryRun
	rows, _ := tx.Query(ctx, s.names(sql), args...)
	var sub RepairedSubscription
	_, err = pgx.ForEachRow(rows, []any{&sub.Name, &sub.Unread, &sub.Doubtful, &sub.Waited}, func() error {
		sub.Waits = options.leaves(sub.Name)
		done.BySubscription = append(done.BySubscription, sub)
		done.Events += sub.Unread + sub.Doubtful
		if !sub.Waits {
			done.Subscriptions++
		}
		return nil
	})
	return done, err
}

// countMissing adds the cursors that are not there.
func (s Stream) countMissing(ctx context.Context, tx pgx.Tx, done *Repaired, options RepairOptions) error {
	rows, _ := tx.Query(ctx, s.names(countMissingSQL))
	var name string
	var cursors int
	var events int64
	_, err := pgx.ForEachRow(rows, []any{&name, &cursors, &events}, func() error {
		i := slices.IndexFunc(done.BySubscription, func(sub RepairedSubscription) bool { return sub.Name == name })
		if i < 0 {
			i = len(done.BySubscription)
			done.BySubscription = append(done.BySubscription, RepairedSubscription{Name: name, Waits: options.leaves(name)})
			if !options.leaves(name) {
				done.Subscriptions++
			}
		}
		done.BySubscription[i].Cursors, done.BySubscription[i].Reread = cursors, events
		return nil
	})
	return err
}

// goOn ends the refusal: the cursors are of the server's history from now on.
func (s Stream) goOn(ctx context.Context, tx pgx.Tx, h *health, options RepairOptions) error {
	history := h.history
	steps := []string{`DELETE FROM {doubts}`, `DELETE FROM {relays}`}
	if !h.stamped {
		// The deliveries' snapshots are of another history, too: they would tell wrong times.
		steps = append(steps, `DELETE FROM {deliveries}`, `DELETE FROM {history}`)
	}
	for _, sql := range steps {
		if _, err := tx.Exec(ctx, s.names(sql)); err != nil {
			return err
		}
	}
	if !h.stamped {
		if err := tx.QueryRow(ctx, s.names(`SELECT {stamp}({'history'})`)).Scan((*[16]byte)(&history)); err != nil {
			return fmt.Errorf("stamp the history: %w", err)
		}
	}
	_, err := tx.Exec(ctx, s.names(`UPDATE {shards} SET history = $1, awaits_repair = awaits_repair AND $2::text[] IS NOT NULL AND subscription <> ALL($2)
		WHERE history IS DISTINCT FROM $1 OR awaits_repair`), [16]byte(history), options.Subscriptions)
	return err
}
