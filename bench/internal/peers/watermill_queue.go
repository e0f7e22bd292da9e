package peers

// watermill-sql with its queue schema: there are no consumer groups, and messages are deleted when they are
// acknowledged. It holds a transaction with row locks open while it handles a batch.

import "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"

func watermillQueue() Peer {
	return newWatermill(WatermillQueue, func(batch int) watermillMode {
		schema := sql.PostgreSQLQueueSchema{SubscribeBatchSize: batch}
		table := schema.MessagesTable(watermillTopic)
		return watermillMode{
			schema:    schema,
			offsets:   sql.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true},
			table:     table,
			countOpen: "SELECT count(*) FROM " + table,
		}
	})
}
