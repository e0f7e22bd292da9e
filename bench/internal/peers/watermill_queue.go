package peers

// watermill-sql with its queue schema: there are no consumer groups, and a message is deleted when it is acknowledged.

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
)

func watermillQueue() Peer {
	return Peer{
		Name:   "watermill-sql, queue",
		Module: watermillModule,
		Run: func(ctx context.Context, url string, w Workload) (time.Duration, error) {
	schema := sql.PostgreSQLQueueSchema{SubscribeBatchSize: WMBatch}
	if WMBytea { schema.GeneratePayloadType = func(string) string { return "BYTEA" } }
	table := schema.MessagesTable(watermillTopic)
	mode := watermillMode{
		schema:    schema,
		offsets:   sql.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true},
		table:     table,
		countOpen: "SELECT count(*) FROM " + table,
	}
	return mode.run(ctx, url, w)
	},
	}
}
