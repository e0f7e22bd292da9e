package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// dotenv reads a file with NAME=value on each line, like docker run --env-file: values are not expanded, so passwords
// and JSON need no escapes. It removes only a pair of quotes around a value. A missing file has no variables.
func dotenv(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the variables: %w", err)
	}
	variables, number := make(map[string]string), 0
	for line := range strings.Lines(string(content)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !found || !variableName.MatchString(name) {
			return nil, fmt.Errorf("%s, line %d is not NAME=value", file, number) // it may hold a secret
		}
		variables[name] = unquote(strings.TrimSpace(value))
	}
	return variables, nil
}

func unquote(value string) string {
	for _, quote := range []string{`"`, `'`} {
		if inner, found := strings.CutPrefix(value, quote); found && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return value
}

// over looks into the environment, then into the file. An empty variable of the environment hides the file's.
func over(environment program.Lookup, file map[string]string) program.Lookup {
	return func(name string) (string, bool) {
		if value, ok := environment(name); ok {
			return value, true
		}
		value, ok := file[name]
		return value, ok
	}
}
