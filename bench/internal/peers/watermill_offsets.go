package peers

// watermill-sql with its default schema: messages stay, and each consumer group has an offset.

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
)

func watermillOffsets() Peer {
	return Peer{
		Name:   "watermill-sql, offsets",
		Module: watermillModule,
		Run: func(ctx context.Context, url string, w Workload) (time.Duration, error) {
	schema := sql.DefaultPostgreSQLSchema{SubscribeBatchSize: WMBatch}
	if WMBytea { schema.GeneratePayloadType = func(string) string { return "BYTEA" } }
	offsets := sql.DefaultPostgreSQLOffsetsAdapter{}
	table := schema.MessagesTable(watermillTopic)
	mode := watermillMode{
		schema:  schema,
		offsets: offsets,
		table:   table,
		countOpen: `SELECT count(*) FROM ` + table + ` WHERE (transaction_id, "offset") >
			(SELECT last_processed_transaction_id, offset_acked FROM ` + offsets.MessagesOffsetsTable(watermillTopic) + `)`,
	}
		return mode.run(ctx, url, w)
	},
	}
}
