package peers

// watermill-sql with its default schema: messages stay, and each consumer group has an offset. A read sorts the whole
// backlog, so that the rate falls with the backlog and grows with the batch.

import "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"

func watermillOffsets() Peer {
	return newWatermill("watermill-sql, offsets", func(batch int) watermillMode {
		schema := sql.DefaultPostgreSQLSchema{SubscribeBatchSize: batch}
		offsets := sql.DefaultPostgreSQLOffsetsAdapter{}
		table := schema.MessagesTable(watermillTopic)
		return watermillMode{
			schema:  schema,
			offsets: offsets,
			table:   table,
			countOpen: "SELECT count(*) FROM " + table + ` WHERE (transaction_id, "offset") >
				(SELECT last_processed_transaction_id, offset_acked FROM ` + offsets.MessagesOffsetsTable(watermillTopic) + ")",
		}
	})
}
