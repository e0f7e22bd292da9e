// Package migrations gives a layout's goose files the table names its user chose.
package migrations

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"
)

// quoted matches a quoted identifier. In the migration files every name that follows
// the table's is quoted, and every name that is fixed by a contract is not.
var quoted = regexp.MustCompile(`"[^"]+"`)

// maxIdentifier is PostgreSQL's limit on names.
const maxIdentifier = 63

// Rename returns the files of the migrations folder with each table called by its new
// name, and the names of indexes, functions and triggers following. The caller has
// validated the new names.
func Rename(files embed.FS, tables map[string]string) (fs.FS, error) {
	return Render(files, func(sql string) (string, error) {
		return quoted.ReplaceAllStringFunc(sql, func(name string) string {
			return rename(strings.Trim(name, `"`), tables)
		}), nil
	})
}

// Render returns the files of the migrations folder, each as render writes it.
func Render(files embed.FS, render func(sql string) (string, error)) (fs.FS, error) {
	paths, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	rendered := make(memory, len(paths))
	for _, path := range paths {
		sql, err := files.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read migration %s: %w", path, err)
		}
		text, err := render(string(sql))
		if err != nil {
			return nil, fmt.Errorf("render migration %s: %w", path, err)
		}
		rendered[strings.TrimPrefix(path, "migrations/")] = []byte(text)
	}
	return rendered, nil
}

func rename(name string, tables map[string]string) string {
	for old, table := range tables {
		if old != table && strings.Contains(name, old) {
			name = shorten(strings.Replace(name, old, table, 1))
			break
		}
	}
	return identifier(name)
}

// identifier quotes a name for a goose file. Goose splits files into statements
// without reading quotes, so a name with a semicolon or a comment in it would tear
// its statement apart: every unusual character is written as a Unicode escape.
func identifier(name string) string {
	var b strings.Builder
	escaped := false
	for _, r := range name {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
			continue
		}
		escaped = true
		fmt.Fprintf(&b, `\+%06x`, r)
	}
	if escaped {
		return `U&"` + b.String() + `"`
	}
	return `"` + b.String() + `"`
}

// shorten keeps a derived name within the limit and still distinct: PostgreSQL would
// cut its end, which is where the names of two indexes differ.
func shorten(name string) string {
	if len(name) <= maxIdentifier {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "_" + hex.EncodeToString(sum[:4])
	cut := maxIdentifier - len(suffix)
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + suffix
}
