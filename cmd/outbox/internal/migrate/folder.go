package migrate

import (
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
		found, err := isThere(folder, there, file, first)
		switch {
		case err != nil:
			return nil, err
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
		for _, name := range there {
			// Flyway has two files of one version.
			if version(name) == version(file.Name) && strings.TrimSuffix(name, ".conf") != strings.TrimSuffix(file.Name, ".conf") {
				return nil, fmt.Errorf("%s has the version of %s; print without --first, or choose another",
					filepath.Join(folder, name), file.Name)
			}
		}
	}
	return missing, nil
}

func migrationsIn(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no folder %s; make it first", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("look for migrations: %w", err)
	}
	for _, entry := range entries {
		if versioned.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// isThere looks for a file under any version. With a first version, files of the same name and other content are
// another layout's, unless the version is the same, too.
func isThere(folder string, there []string, file File, first int64) (bool, error) {
	other := ""
	for _, name := range there {
		if versioned.ReplaceAllString(name, "$3") != versioned.ReplaceAllString(file.Name, "$3") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return false, fmt.Errorf("look for migrations: %w", err)
		}
		if string(content) == file.Content {
			return true, nil
		}
		if first == 0 || name == file.Name {
			other = name
		}
	}
	if other != "" {
		return false, fmt.Errorf("%s is there already and is another one; choose another --out or --first", filepath.Join(folder, other))
	}
	return false, nil
}

// moveBehind gives files versions after all that are there. Those of Atlas are times and come later anyway.
func moveBehind(there []string, files []File) {
	var by int64
	for _, name := range there {
		by = max(by, version(name)+1-version(files[0].Name))
	}
	for i, file := range files {
		part := versioned.FindStringSubmatch(file.Name)
		files[i].Name = fmt.Sprintf("%s%0*d%s", part[1], len(part[2]), version(file.Name)+by, part[3])
	}
}
