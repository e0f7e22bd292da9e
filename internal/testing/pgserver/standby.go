//go:build unix && !aix && !solaris

package pgserver

// The data of a standby where there is no pg_basebackup for the server's version: by the calls that it makes, too. The
// servers of the version matrix come without it.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// copyByHand does what copyPrimary does, with a primary on this machine, from PostgreSQL 15 on.
func (c *cluster) copyByHand(ctx context.Context) error {
	conn, err := pgconn.Connect(ctx, c.primary)
	if err != nil {
		return fmt.Errorf("connecting to the primary: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// The slot keeps the log from the first checkpoint on; it ends with the connection.
	answers, err := ask(ctx, conn, `SHOW data_directory`,
		`SELECT pg_create_physical_replication_slot('copy_`+fmt.Sprint(os.Getpid())+`', true, true)`,
		`SELECT pg_backup_start('standby', true)`)
	if err != nil {
		return err
	}
	from := answers[0]
	if err := c.copyFolder(from, skippedInBackup); err != nil {
		return err
	}
	if answers, err = ask(ctx, conn, `SELECT labelfile FROM pg_backup_stop(false)`); err != nil {
		return err
	}
	// After the stop: it wrote the record up to which the copy is of use to nobody.
	if err := c.copyFolder(from, func(path string) bool { return path != "." && !strings.HasPrefix(path, "pg_wal") }); err != nil {
		return err
	}
	files := map[string]string{"backup_label": answers[0]}
	if c.follow {
		files["standby.signal"] = ""
		files["postgresql.auto.conf"] = fmt.Sprintf("\nprimary_conninfo = '%s'\n", strings.ReplaceAll(c.primary, "'", "''"))
	}
	for name, text := range files {
		if err := c.appendFile(name, text); err != nil {
			return err
		}
	}
	return nil
}

// ask runs queries that answer with one value each.
func ask(ctx context.Context, conn *pgconn.PgConn, queries ...string) (answers []string, err error) {
	for _, query := range queries {
		results, err := conn.Exec(ctx, query).ReadAll()
		if err != nil {
			return nil, fmt.Errorf("asking the primary, %s: %w", query, err)
		}
		answers = append(answers, string(results[0].Rows[0][0]))
	}
	return answers, nil
}

// skippedInBackup tells what is the running server's own, or comes after the backup's stop.
func skippedInBackup(path string) bool {
	if path == "postmaster.pid" || path == "postmaster.opts" {
		return true
	}
	folder, _, inside := strings.Cut(path, string(filepath.Separator))
	if !inside {
		return false
	}
	switch folder {
	case "pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans":
		return true
	default:
		return false
	}
}

// copyFolder copies the data of a running server, but for what is skipped. What vanishes meanwhile is no loss: the log
// says so, too.
func (c *cluster) copyFolder(from string, skipped func(path string) bool) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(c.folder.data(), name)
		switch {
		case name == "." || skipped(name):
			return nil
		case entry.IsDir():
			if err := os.Mkdir(target, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			return c.giveToServer(target)
		default:
			if err := copyFile(path, target); errors.Is(err, fs.ErrNotExist) {
				return nil
			} else if err != nil {
				return err
			}
			return c.giveToServer(target)
		}
	})
	if err != nil {
		return fmt.Errorf("copying the primary's data: %w", err)
	}
	return nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer closeQuietly(source)
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// appendFile adds a text to a file of the server's data, which it makes if there is none.
func (c *cluster) appendFile(name, text string) error {
	path := filepath.Join(c.folder.data(), name)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("writing the standby's %s: %w", name, err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the standby's %s: %w", name, err)
	}
	return c.giveToServer(path)
}
