package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// versioned matches a migration's file name in every tool: its prefix, its version and the rest.
var versioned = regexp.MustCompile(`^(V?)(\d{1,18})(.*\.(?:sql|conf|go|java))$`)

func version(name string) int64 {
	n, _ := strconv.ParseInt(versioned.FindStringSubmatch(name)[2], 10, 64) // they are digits
	return n
}

func withoutVersion(name string) string { return versioned.ReplaceAllString(name, "$3") }

// Missing returns the printed files that a folder lacks. A file is there if one of the same name and content has any
// version, because an application puts its own migrations between those of two releases. If first is 0, the versions
// go on after the highest one in the folder; otherwise a version that another file has is an error.
func Missing(folder string, printed []File, first int64) ([]File, error) {
	there, err := migrationsIn(folder)
	if err != nil {
		return nil, err
	}
	var missing []File
	for _, file := range printed {
		found, other := find(file, there, first)
		switch {
		case !found && other != "":
			return nil, fmt.Errorf("%s is there already and is another one; choose another --out or --first", filepath.Join(folder, other))
		case !found:
			missing = append(missing, file)
		case first == 0 && len(missing) > 0: // at the end it would run too late
			return nil, fmt.Errorf("%s has %s, but not %s, which comes before it; put it back, or print again with the --first of then",
				folder, file.Name, missing[0].Name)
		}
	}
	if first == 0 && len(missing) > 0 {
		moveBehind(there, missing)
	}
	for _, file := range missing {
		for _, other := range there {
			// Flyway has two files of one version.
			if version(other.Name) == version(file.Name) && strings.TrimSuffix(other.Name, ".conf") != strings.TrimSuffix(file.Name, ".conf") {
				return nil, fmt.Errorf("%s has the version of %s; print without --first, or choose another",
					filepath.Join(folder, other.Name), file.Name)
			}
		}
	}
	return missing, nil
}

func migrationsIn(folder string) (files []File, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no folder %s; make it first", folder)
	}
	for _, entry := range entries {
		if !versioned.MatchString(entry.Name()) {
			continue
		}
		content, readErr := os.ReadFile(filepath.Join(folder, entry.Name()))
		files, err = append(files, File{entry.Name(), string(content)}), cmp.Or(err, readErr)
	}
	if err != nil {
		return nil, fmt.Errorf("look for migrations: %w", err)
	}
	return files, nil
}

// find looks for a file under any version. If it is not there, other has its name and another content. With a first
// version such a file belongs to another layout, unless its version is the same, too.
func find(file File, there []File, first int64) (found bool, other string) {
	for _, is := range there {
		switch {
		case withoutVersion(is.Name) != withoutVersion(file.Name):
		case is.Content == file.Content:
			return true, ""
		case first == 0 || is.Name == file.Name:
			other = is.Name
		}
	}
	return false, other
}

// moveBehind gives files versions after all that are there. Those of Atlas are times and come later anyway.
func moveBehind(there, files []File) {
	var by int64
	for _, file := range there {
		by = max(by, version(file.Name)+1-version(files[0].Name))
	}
	for i, file := range files {
		part := versioned.FindStringSubmatch(file.Name)
		files[i].Name = fmt.Sprintf("%s%0*d%s", part[1], len(part[2]), version(file.Name)+by, part[3])
	}
}
