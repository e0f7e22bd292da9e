package migrations

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Migration is one goose file, read.
type Migration struct {
	// Version is the number that its name begins with.
	Version int64
	// Name is the file's name without the number and the extension, such as claim_index.
	Name string
	// File is the file's name.
	File string
	// Comment is the text before the first directive.
	Comment string
	// Up and Down are its statements.
	Up, Down []string
	// NoTransaction is set on a file whose statements do not run in a transaction, such as CREATE INDEX CONCURRENTLY.
	NoTransaction bool
}

// Read returns the goose files of a folder, by version. It knows the directives that our own files use and refuses others.
func Read(files fs.FS) ([]Migration, error) {
	paths, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the migrations: %w", err)
	}
	list := make([]Migration, 0, len(paths))
	for _, path := range paths {
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("read migration %s: %w", path, err)
		}
		m, err := parse(path, string(content))
		if err != nil {
			return nil, fmt.Errorf("read migration %s: %w", path, err)
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	return list, nil
}

func parse(file, content string) (m Migration, err error) {
	number, name, _ := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
	m.File, m.Name = file, name
	if m.Version, err = strconv.ParseInt(number, 10, 64); err != nil || m.Version < 1 {
		return m, fmt.Errorf("its name begins with %q, not with a version", number)
	}
	var part *[]string // nil before the first part
	var statement strings.Builder
	block := false
	end := func() {
		*part = append(*part, strings.TrimSpace(statement.String()))
		statement.Reset()
	}
	for line := range strings.Lines(content) {
		line := strings.TrimRight(line, " \t\r\n")
		directive, ok := strings.CutPrefix(strings.TrimSpace(line), "-- +goose ")
		switch {
		case !ok && part != nil:
			statement.WriteString(line + "\n")
			if !block && strings.HasSuffix(line, ";") && !strings.HasPrefix(strings.TrimSpace(line), "--") {
				end()
			}
		case !ok && !m.NoTransaction:
			m.Comment += line + "\n"
		case !ok:
		case directive == "NO TRANSACTION":
			m.NoTransaction = true
		case directive == "Up":
			part = &m.Up
		case directive == "Down" && rest(&statement) == "":
			part = &m.Down
		case directive == "StatementBegin" && part != nil:
			block = true
		case directive == "StatementEnd" && block:
			block = false
			end()
		default:
			return m, fmt.Errorf("it has an unexpected line %q", line)
		}
	}
	switch left := rest(&statement); {
	case left != "" && !block:
		return m, fmt.Errorf("it ends in a statement without a semicolon: %s", left)
	case block || m.Up == nil:
		return m, errors.New("it has no Up part that ends")
	}
	return m, nil
}

// rest takes what was read and is not ended. A comment is nothing.
func rest(statement *strings.Builder) string {
	var left strings.Builder
	for line := range strings.Lines(statement.String()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			left.WriteString(line)
		}
	}
	statement.Reset()
	return left.String()
}
