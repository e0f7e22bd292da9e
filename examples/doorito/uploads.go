package main

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/doorito"
)

const fileStoredType = "file.stored"

// fileStored tells of a file. Whoever handles it needs nothing of the table files.
type fileStored struct {
	FileID   int64     `json:"file_id"`
	Name     string    `json:"name"`
	Size     int       `json:"size"`
	StoredAt time.Time `json:"stored_at"`
}

// storeFile stores a file and emits its event, both or neither. The same upload key again gives the
// file that is there, and no second event.
func (s *service) storeFile(ctx context.Context, uploadKey, name string, content []byte) (file fileStored, event outbox.Emitted, err error) {
	file = fileStored{Name: name, Size: len(content)}
	err = s.emitter.InTx(ctx, s.db.Pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			INSERT INTO files (upload_key, name, content) VALUES ($1, $2, $3)
			ON CONFLICT (upload_key) DO UPDATE SET upload_key = excluded.upload_key
			RETURNING id, stored_at`, uploadKey, name, content).Scan(&file.FileID, &file.StoredAt)
		if err != nil {
			return fmt.Errorf("store the file: %w", err)
		}
		event, err = doorito.EmitEvent(ctx, s.emitter, tx, "UploadFile", strconv.FormatInt(file.FileID, 10), fileStoredType, file,
			doorito.IdempotencyKey(uploadKey))
		return err
	})
	if err == nil && !event.AlreadyEnqueued {
		s.say.printf("file %d, %s, and its event are committed", file.FileID, name)
	}
	return file, event, err
}

// queueThumbnail handles file.stored. It may be called again for the same file, and then finds the
// job there.
func (s *service) queueThumbnail(ctx context.Context, file fileStored, _ outbox.Message) error {
	format := strings.TrimPrefix(path.Ext(file.Name), ".")
	var known bool
	if err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM decoders WHERE format = $1)`, format).Scan(&known); err != nil {
		return fmt.Errorf("look for a decoder: %w", err)
	}
	if !known {
		return fmt.Errorf("no decoder for %q is installed", format)
	}
	tag, err := s.db.Exec(ctx, `INSERT INTO thumbnail_jobs (file_id) VALUES ($1) ON CONFLICT (file_id) DO NOTHING`, file.FileID)
	if err != nil {
		return fmt.Errorf("queue the thumbnail: %w", err)
	}
	if tag.RowsAffected() == 0 {
		s.say.printf("  file %d has its thumbnail job already", file.FileID)
	} else {
		s.say.printf("  thumbnail job for file %d", file.FileID)
	}
	return nil
}

// installDecoder lets the thumbnailer read one more format.
func (s *service) installDecoder(ctx context.Context, format string) error {
	if _, err := s.db.Exec(ctx, `INSERT INTO decoders VALUES ($1) ON CONFLICT DO NOTHING`, format); err != nil {
		return fmt.Errorf("install the decoder: %w", err)
	}
	s.say.printf("a decoder for %q is installed", format)
	return nil
}

// removeDecoder makes the handler fail for files of a format.
func (s *service) removeDecoder(ctx context.Context, format string) error {
	if _, err := s.db.Exec(ctx, `DELETE FROM decoders WHERE format = $1`, format); err != nil {
		return fmt.Errorf("remove the decoder: %w", err)
	}
	return nil
}
