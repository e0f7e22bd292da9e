package pgserver

// Finding the server's programs: distributions keep them out of PATH, each in a place of its own.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// binEnv names the environment variable with the folder of the server's programs. When it is set nothing else is
// tried, so that a run never takes another version than the one asked for.
const binEnv = "OUTBOX_PG_BIN"

// versionEnv names the environment variable with the major version to take, such as 18. It is looked for in the usual
// places and in toolsFolder. Nothing else is tried when it is set; binEnv wins over it.
const versionEnv = "OUTBOX_POSTGRES"

// toolsFolder is where scripts/ensure-postgres puts a version that the system lacks, from the root of the repository.
const toolsFolder = ".tools/postgres-%s/bin"

// ErrNoBinaries means that no PostgreSQL server is installed in any of the usual places.
var ErrNoBinaries = errors.New("pgserver: no PostgreSQL server found: install one (Debian: apt-get install postgresql; " +
	"Fedora: dnf install postgresql-server; macOS: brew install postgresql@17) or set " + binEnv +
	" to the folder that has initdb and postgres")

// usualPlaces are tried in this order; scripts/ensure-postgres has the same list.
var usualPlaces = [...]string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/opt/homebrew/bin",
	"/usr/local/pgsql/bin",
}

// findBinaries returns the folder that has initdb and postgres.
func findBinaries() (string, error) {
	if dir := os.Getenv(binEnv); dir != "" {
		if hasBinaries(dir) {
			return filepath.Abs(dir)
		}
		return "", ErrNoBinaries
	}
	if major := Version(); major != "" {
		return findVersion(major)
	}
	if found, err := exec.LookPath("initdb"); err == nil {
		// A link in PATH says nothing about where the other programs are; its target does.
		if target, err := filepath.EvalSymlinks(found); err == nil && hasBinaries(filepath.Dir(target)) {
			return filepath.Abs(filepath.Dir(target))
		}
	}
	for _, pattern := range usualPlaces {
		for _, dir := range newestFirst(pattern) {
			if hasBinaries(dir) {
				return dir, nil
			}
		}
	}
	return "", ErrNoBinaries
}

// Version is the major version that was asked for, or "" for any.
func Version() string { return os.Getenv(versionEnv) }

// findVersion returns the folder that has initdb and postgres of one major version.
func findVersion(major string) (string, error) {
	if number, err := strconv.Atoi(major); err != nil || number <= 0 {
		return "", fmt.Errorf("pgserver: %s=%s is not a major version of PostgreSQL, such as 18", versionEnv, major)
	}
	for _, pattern := range usualPlaces {
		if dir := strings.Replace(pattern, "*", major, 1); dir != pattern && hasBinaries(dir) {
			return dir, nil
		}
	}
	if dir, ok := findInTools(major); ok {
		return dir, nil
	}
	return "", fmt.Errorf("pgserver: no PostgreSQL %s found: run scripts/ensure-postgres %[1]s, or set %s to the folder that has its initdb and postgres",
		major, binEnv)
}

// findInTools looks for a version that scripts/ensure-postgres installed. Tests run in the folder of their package, so
// it looks in the folders above, too.
func findInTools(major string) (string, bool) {
	folder, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		if dir := filepath.Join(folder, fmt.Sprintf(toolsFolder, major)); hasBinaries(dir) {
			return dir, true
		}
		if folder == filepath.Dir(folder) {
			return "", false
		}
		folder = filepath.Dir(folder)
	}
}

func hasBinaries(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// newestFirst returns the folders that match the pattern, sorted by the version that stands where the star is.
func newestFirst(pattern string) []string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	before, after, _ := strings.Cut(pattern, "*")
	version := func(dir string) float64 {
		// What is not a number sorts last, as 0.
		number, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(dir, before), after), 64)
		return number
	}
	slices.SortStableFunc(dirs, func(a, b string) int {
		switch va, vb := version(a), version(b); {
		case va > vb:
			return -1
		case va < vb:
			return 1
		default:
			return 0
		}
	})
	return dirs
}
