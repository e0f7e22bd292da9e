package survey

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// Kind is the kind of an Object.
type Kind string

// The kinds of objects.
const (
	Table    Kind = "table"
	Index    Kind = "index"
	Type     Kind = "type"
	Function Kind = "function"
)

// Object is something that a migration creates.
type Object struct {
	// Version is the migration's number.
	Version int64
	// Kind is the object's kind.
	Kind Kind
	// Name is its name, without a schema.
	Name string
	// Problem is set if the database has something else under the name: it says what that is, and what to do.
	Problem string

	// table is an index's table, values and source are an enum's values and statement, body is a function's.
	table, source, body string
	values              []string
}

// String returns the kind and the quoted name.
func (o Object) String() string { return fmt.Sprintf("%s %q", o.Kind, o.Name) }

// ident matches a name as our files write it: an unusual character in quotes is a Unicode escape of six digits.
const ident = `((?:U&)?"[^"]+"|\w+)`

// The statements in our own migrations that create something.
var (
	createTable    = regexp.MustCompile(`CREATE TABLE ` + ident)
	createIndex    = regexp.MustCompile(`CREATE (?:UNIQUE )?INDEX (?:CONCURRENTLY )?` + ident + ` ON ` + ident)
	uniqueKey      = regexp.MustCompile(`CONSTRAINT ` + ident + ` UNIQUE`)
	createType     = regexp.MustCompile(`CREATE TYPE ` + ident + ` AS ENUM \(([^)]*)\)`)
	createFunction = regexp.MustCompile(`CREATE (?:OR REPLACE )?FUNCTION ` + ident + `\(\)[^$]*\$\$((?s:.*?))\$\$`)
	addValue       = regexp.MustCompile(`ALTER TYPE ` + ident + ` ADD VALUE IF NOT EXISTS '([^']*)'`)
	literal        = regexp.MustCompile(`'([^']*)'`)
)

// objects returns what goose files create, in order, and the enums to which they later add values, with those
// values.
func objects(files fs.FS) (list, added []Object, err error) {
	paths, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, nil, fmt.Errorf("list the migrations: %w", err)
	}
	for _, path := range paths {
		number, _, _ := strings.Cut(path, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("read the number of migration %s: %w", path, err)
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, nil, fmt.Errorf("read migration %s: %w", path, err)
		}
		up, _, _ := strings.Cut(string(content), "-- +goose Down")
		for _, o := range made(up) {
			o.Version = version
			list = append(list, o)
		}
		for _, m := range addValue.FindAllStringSubmatch(up, -1) {
			added = append(added, Object{Version: version, Kind: Type, Name: plain(m[1]), values: []string{m[2]}})
		}
	}
	return list, added, nil
}

// made returns the objects that the statements of one file create.
func made(sql string) (list []Object) {
	for _, m := range createType.FindAllStringSubmatch(sql, -1) {
		o := Object{Kind: Type, Name: plain(m[1]), source: m[0]}
		for _, value := range literal.FindAllStringSubmatch(m[2], -1) {
			o.values = append(o.values, value[1])
		}
		list = append(list, o)
	}
	for _, m := range createTable.FindAllStringSubmatch(sql, -1) {
		list = append(list, Object{Kind: Table, Name: plain(m[1])})
	}
	for _, m := range createIndex.FindAllStringSubmatch(sql, -1) {
		list = append(list, Object{Kind: Index, Name: plain(m[1]), table: plain(m[2])})
	}
	for _, m := range uniqueKey.FindAllStringSubmatch(sql, -1) {
		list = append(list, Object{Kind: Index, Name: plain(m[1])})
	}
	for _, m := range createFunction.FindAllStringSubmatch(sql, -1) {
		list = append(list, Object{Kind: Function, Name: plain(m[1]), body: m[2]})
	}
	return list
}

var escaped = regexp.MustCompile(`\\\+([0-9a-f]{6})`)

// plain returns a name without quotes and escapes.
func plain(name string) string {
	inner, unicode := strings.CutPrefix(name, "U&")
	inner = strings.Trim(inner, `"`)
	if !unicode {
		return inner
	}
	return escaped.ReplaceAllStringFunc(inner, func(e string) string {
		code, err := strconv.ParseInt(e[2:], 16, 32)
		if err != nil {
			return e // the expression rules this out
		}
		return string(rune(code))
	})
}
