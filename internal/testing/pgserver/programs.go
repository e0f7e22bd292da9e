package pgserver

// Client programs, such as pg_dump and psql. The servers of the version matrix come without them.

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrNoProgram means that no client program here is made for the servers that Start starts.
var ErrNoProgram = errors.New("no such program for this version of PostgreSQL")

// Program is the path of one of PostgreSQL's client programs, such as pg_dump: that of the servers that Start starts,
// or of a newer version, which works with older servers. The error is ErrNoProgram if there is neither.
func Program(name string) (string, error) {
	dir, err := findBinaries()
	if err != nil {
		return "", err
	}
	return clientFor(dir, name)
}

// clientFor is the path of a program for the servers of a folder.
func clientFor(dir, name string) (string, error) {
	if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
		return path, nil
	}
	server, err := majorVersion(filepath.Join(dir, "postgres"))
	if err != nil {
		return "", err
	}
	for _, pattern := range usualPlaces {
		for _, other := range newestFirst(pattern) {
			path, err := exec.LookPath(filepath.Join(other, name))
			if err != nil {
				continue
			}
			if client, err := majorVersion(path); err == nil && client >= server {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("pgserver: %s for PostgreSQL %d: %w", name, server, ErrNoProgram)
}

// majorVersion asks a program of PostgreSQL for its version.
func majorVersion(program string) (int, error) {
	answer, err := askVersion(program)
	if err != nil {
		return 0, err
	}
	return parseMajor(answer)
}

// askVersion is what a program of PostgreSQL says about its version.
func askVersion(program string) (string, error) {
	output, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("pgserver: asking %s for its version: %w", program, err)
	}
	return string(output), nil
}

// parseMajor reads the answer to --version: "pg_dump (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)", "postgres (PostgreSQL) 18beta1".
func parseMajor(answer string) (int, error) {
	_, after, found := strings.Cut(answer, "(PostgreSQL) ")
	digits := after[:len(after)-len(strings.TrimLeft(after, "0123456789"))]
	major, err := strconv.Atoi(digits)
	if !found || err != nil {
		return 0, fmt.Errorf("pgserver: %q names no version of PostgreSQL", strings.TrimSpace(answer))
	}
	return major, nil
}

// Release is the version of the servers that Start starts, such as 18.4.
func Release() (string, error) {
	dir, err := findBinaries()
	if err != nil {
		return "", err
	}
	answer, err := askVersion(filepath.Join(dir, "postgres"))
	if err != nil {
		return "", err
	}
	_, release, _ := strings.Cut(strings.TrimSpace(answer), "(PostgreSQL) ")
	release, _, _ = strings.Cut(release, " ")
	return release, nil
}
