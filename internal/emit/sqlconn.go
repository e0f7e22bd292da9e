package emit

import (
	"context"
	"database/sql"
	"encoding/hex"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// SQLTx is what *sql.Tx and GORM's transactions have in common.
type SQLTx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// CheckedTx is a transaction of a library that this module must not know, such as GORM's.
type CheckedTx interface {
	SQLTx
	// Err fails if it is no open transaction.
	Err() error
}

// SQLConn runs statements through database/sql, with any PostgreSQL driver.
type SQLConn struct{ Tx SQLTx }

// Exec runs a statement and reports the rows affected.
func (c SQLConn) Exec(ctx context.Context, query string, args []any) (int64, error) {
	result, err := c.Tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query runs a statement and calls row for each row of the answer.
func (c SQLConn) Query(
	ctx context.Context, query string, args []any, row func(scan func(dest ...any) error) error,
) (err error) {
	rows, err := c.Tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
	}()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Array writes values in PostgreSQL's text form of an array, which every driver
// passes on untouched; database/sql itself knows no arrays.
func (c SQLConn) Array(values any) any {
	switch values := values.(type) {
	case []string:
		return array(values, writeElement)
	case []*string:
		return array(values, func(b *strings.Builder, value *string) {
			if value == nil {
				b.WriteString("NULL")
			} else {
				writeElement(b, *value)
			}
		})
	case []pgtype.UUID:
		return array(values, func(b *strings.Builder, value pgtype.UUID) {
			if value.Valid {
				b.WriteString(value.String())
			} else {
				b.WriteString("NULL")
			}
		})
	case [][]byte:
		return array(values, func(b *strings.Builder, value []byte) { b.WriteString(`"\\x` + hex.EncodeToString(value) + `"`) })
	}
	return "{}"
}

func array[T any](values []T, write func(*strings.Builder, T)) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, value := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		write(&b, value)
	}
	b.WriteByte('}')
	return b.String()
}

func writeElement(b *strings.Builder, value string) {
	b.WriteByte('"')
	for {
		i := strings.IndexAny(value, `"\`)
		if i < 0 {
			break
		}
		b.WriteString(value[:i])
		b.WriteByte('\\')
		b.WriteByte(value[i])
		value = value[i+1:]
	}
	b.WriteString(value)
	b.WriteByte('"')
}
