package cli

import (
	"context"
	"errors"
	"io"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxpgx"
)

const emitPage = 1000

func newEmit(a *app) *cobra.Command {
	var from source
	var config outbox.EmitConfig
	var one eventFlags
	cmd := &cobra.Command{
		Use:   "emit",
		Short: "Write events: one from flags, or many from JSON Lines on standard input",
		Long: `With --payload, writes the one event the flags describe. Without it, reads JSON Lines
from standard input, one event a line, with the fields id, namespace, topic, type,
aggregateType, aggregateId, tenantId, dedupeKey, key, headers, contentType, notBefore,
maxAttempts and payload (JSON), or payloadBase64 where the column holds bytes.

All events go into one transaction: if one line is refused, nothing is written.`,
		Example: `  outbox emit --type order_placed --topic orders --key order-1 --payload '{"order":1}'
  outbox emit --layout doorito < events.jsonl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			input, err := one.source(cmd, a.In)
			if err != nil {
				return err
			}
			return a.emit(cmd.Context(), &from, config, input)
		},
	}
	from.flags(cmd)
	one.flags(cmd)
	cmd.Flags().StringVar(&config.DefaultNamespace, "namespace-default", "", "`namespace` of events that have none")
	cmd.Flags().StringVar(&config.DefaultTopic, "topic-default", "", "`topic` of events that have none")
	cmd.Flags().BoolVar(&config.Serialize, "serialize", false, "wait for other transactions that emit events of the same keys, with the same flag")
	cmd.Flags().IntVar(&config.MaxPayload, "max-payload", outbox.DefaultMaxPayload, "largest payload in `bytes`")
	return cmd
}

// events yields the events of a run, one at a time, and io.EOF at the end.
type events interface {
	next() (outbox.Event, error)
	// place names the n-th event (from 0) for people.
	place(n int) string
}

func (a *app) emit(ctx context.Context, from *source, config outbox.EmitConfig, input events) error {
	found, err := from.resolve()
	if err != nil {
		return err
	}
	emitter, err := outboxpgx.New(found.target(), config)
	if err != nil {
		return &usageError{err}
	}
	conn, err := from.connect(ctx)
	if err != nil {
		return err
	}
	// An error of Close is of no use: the transaction is committed or abandoned.
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := found.verify(ctx, conn, true); err != nil {
		return classify(err, found.ifMissing())
	}

	var done []outbox.Emitted
	err = emitter.InTx(ctx, conn, func(tx pgx.Tx) error {
		for {
			page, more, err := readPage(input)
			if err != nil {
				return err
			}
			results, err := emitter.EmitMany(ctx, tx, page)
			var refused *outbox.EventError
			if errors.As(err, &refused) {
				return usagef("%s: %s %s; nothing was written", input.place(len(done)+refused.Index), refused.Field, refused.Problem)
			}
			if err != nil {
				return err
			}
			done = append(done, results...)
			if !more {
				return nil
			}
		}
	})
	if err != nil {
		return classify(err, found.ifMissing())
	}
	// Wakes relays; if it fails they poll.
	_ = found.wake(ctx, conn)
	return a.printEmitted(done)
}

// readPage reads the events of one statement, and says whether there may be more.
func readPage(input events) (page []outbox.Event, more bool, err error) {
	for len(page) < emitPage {
		event, err := input.next()
		if errors.Is(err, io.EOF) {
			return page, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		page = append(page, event)
	}
	return page, true, nil
}

func (a *app) printEmitted(done []outbox.Emitted) error {
	repeated := 0
	for _, result := range done {
		if result.AlreadyEnqueued {
			repeated++
		}
		if a.json {
			if err := a.printJSON(struct {
				ID              uuid.UUID `json:"id"`
				AlreadyEnqueued bool      `json:"alreadyEnqueued"`
			}(result)); err != nil {
				return err
			}
		}
	}
	switch {
	case a.json:
		return nil
	case len(done) == 1 && repeated == 1:
		return a.printf("already enqueued as %s\n", done[0].ID)
	case len(done) == 1:
		return a.printf("emitted %s\n", done[0].ID)
	}
	return a.printf("emitted %d, already enqueued %d\n", len(done)-repeated, repeated)
}
