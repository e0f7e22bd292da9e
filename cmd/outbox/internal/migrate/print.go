package migrate

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/packfinderz/outbox/internal/migrations"
)

// File is a migration in the format of another tool.
type File struct {
	// Name is the file's name.
	Name string `json:"name"`
	// Content is its text.
	Content string `json:"content"`
}

// Formats are the names of the tools that Print knows.
const Formats = "goose, tern, atlas or flyway"

// Print converts migrations for a tool. The first migration gets the version first; zero means 1 or, for Atlas,
// whose versions are times, now.
func Print(files fs.FS, tool string, first int64, now time.Time) ([]File, error) {
	list, err := migrations.Read(files)
	if err != nil {
		return nil, err
	}
	versions, err := count(tool, first, now)
	if err != nil {
		return nil, err
	}
	var printed []File
	for i, m := range list {
		switch version := versions(i); tool {
		case "goose":
			content, err := fs.ReadFile(files, m.File)
			if err != nil {
				return nil, fmt.Errorf("read migration %s: %w", m.File, err)
			}
			printed = append(printed, File{fmt.Sprintf("%05d_%s.sql", version, m.Name), string(content)})
		case "tern":
			printed = append(printed, tern(m, version))
		case "atlas":
			printed = append(printed, atlas(m, version))
		case "flyway":
			printed = append(printed, flyway(m, version)...)
		default:
			return nil, fmt.Errorf("there is no format %q; choose %s", tool, Formats)
		}
	}
	return printed, nil
}

// atlasTime is how Atlas writes a time as a version.
const atlasTime = "20060102150405"

// count returns the version of each migration: numbers, or seconds for Atlas.
func count(tool string, first int64, now time.Time) (func(int) int64, error) {
	if tool != "atlas" {
		return func(i int) int64 { return max(first, 1) + int64(i) }, nil
	}
	start := now.UTC()
	if first != 0 {
		var err error
		if start, err = time.Parse(atlasTime, strconv.FormatInt(first, 10)); err != nil {
			return nil, fmt.Errorf("the first version %d is no time; Atlas wants one such as %s", first, now.UTC().Format(atlasTime))
		}
	}
	return func(i int) (version int64) {
		_, _ = fmt.Sscan(start.Add(time.Duration(i)*time.Second).Format(atlasTime), &version) // they are digits
		return version
	}, nil
}

// tern has both directions in one file, and runs every file in a transaction unless told otherwise.
func tern(m migrations.Migration, version int64) File {
	head := ""
	if m.NoTransaction {
		head = "---- tern: disable-tx ----\n\n"
	}
	return File{
		fmt.Sprintf("%03d_%s.sql", version, m.Name),
		head + m.Comment + script(m.Up) + "\n---- create above / drop below ----\n\n" + script(m.Down),
	}
}

// atlas has no down migrations. A directive for the file is followed by an empty line.
func atlas(m migrations.Migration, version int64) File {
	head := ""
	if m.NoTransaction {
		head = "-- atlas:txmode none\n\n"
	}
	return File{fmt.Sprintf("%d_%s.sql", version, m.Name), head + m.Comment + script(m.Up)}
}

// flyway has no down migrations, and reads settings of a file from another file, which has to be there first.
func flyway(m migrations.Migration, version int64) []File {
	name := fmt.Sprintf("V%d__%s.sql", version, m.Name)
	file := File{name, m.Comment + script(m.Up)}
	if m.NoTransaction {
		return []File{{name + ".conf", "executeInTransaction=false\n"}, file}
	}
	return []File{file}
}

func script(statements []string) string {
	var b strings.Builder
	for _, statement := range statements {
		b.WriteString(strings.TrimSuffix(statement, ";") + ";\n")
	}
	return b.String()
}
