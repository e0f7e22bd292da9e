package natsjs

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Warnings says, before anything is published, what makes an acknowledgement less safe. A client cannot
// ask a server for its sync_interval, so it warns unless SyncAlways is set. It examines the streams of the
// topics, as far as the server answers.
func (p *Publisher) Warnings(ctx context.Context, topics ...string) []string {
	var list []string
	if !p.config.SyncAlways {
		list = append(list, "JetStream acknowledges a message before it is synced to disk: what came in the last two minutes may be lost with the server's power. "+
			"Set jetstream { sync_interval: always } on the servers, and then sync-always=true here")
	}
	if p.calls.Begin() != nil {
		return list
	}
	defer p.calls.End()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	told := make(map[string]bool)
	for _, topic := range topics {
		info := p.lookAt(ctx, topic)
		if info == nil || told[info.Config.Name] {
			continue
		}
		told[info.Config.Name] = true
		switch {
		case info.Config.Storage == jetstream.MemoryStorage:
			list = append(list, fmt.Sprintf("stream %s keeps its messages in memory: they are gone when its servers restart. Use file storage", info.Config.Name))
		case info.Config.PersistMode == jetstream.AsyncPersistMode:
			list = append(list, fmt.Sprintf("stream %s acknowledges a message before it is written: it may be lost when its server crashes. Leave persist_mode away", info.Config.Name))
		}
	}
	return list
}

// lookAt is what the stream of a topic says of itself; nil if that cannot be known. It makes none.
func (p *Publisher) lookAt(ctx context.Context, topic string) *streamInfo {
	subject, err := p.config.subject(topic)
	if err != nil {
		return nil
	}
	l, err := p.link(ctx)
	if err != nil {
		return nil
	}
	name, err := l.streamOf(ctx, subject)
	if err != nil || name == "" {
		return nil
	}
	info, err := l.infoOf(ctx, name, subject)
	if err != nil {
		return nil
	}
	return info
}
