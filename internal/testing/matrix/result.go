package main

// What came of a run of go test -json.

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what came of the tests of an area.
type result struct {
	failed bool
	passed int // tests, subtests included
	took   time.Duration
	// leftOut are the tests that were skipped, with their reason.
	leftOut []string
	// output is what failed tests and packages printed.
	output string
}

// ok demands that something was tested.
func (r *result) ok() bool { return !r.failed && r.passed > 0 }

func (r *result) String() string {
	word := "ok"
	switch {
	case r.failed:
		word = "FAILED"
	case r.passed == 0:
		word = "NO TESTS"
	}
	return fmt.Sprintf("%s %.0f s", word, r.took.Seconds())
}

// event is a line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// readResult reads the lines to their end.
func readResult(lines io.Reader) (result, error) {
	var r result
	outputs := make(map[string][]byte) // by package and test
	var failures strings.Builder
	for decoder := json.NewDecoder(lines); ; {
		var e event
		if err := decoder.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			r.output = failures.String()
			return r, fmt.Errorf("read what go test says: %w", err)
		}
		name := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			outputs[name] = append(outputs[name], e.Output...)
			continue
		case "pass":
			if e.Test != "" {
				r.passed++
			}
		case "fail", "build-fail":
			r.failed = true
			failures.Write(outputs[name])
		case "skip":
			if e.Test != "" { // else a package without tests
				r.leftOut = append(r.leftOut, fmt.Sprintf("%s.%s: %s", lastPart(e.Package), e.Test, reason(outputs[name])))
			}
		default:
			continue
		}
		delete(outputs, name)
	}
	r.output = failures.String()
	return r, nil
}

func lastPart(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// reason is what a skipped test said last: "    restore.go:30: left out …".
func reason(output []byte) string {
	said := "it does not say why"
	for line := range strings.Lines(string(output)) {
		if _, text, found := strings.Cut(line, ".go:"); found {
			_, text, _ = strings.Cut(text, ": ")
			said = strings.TrimSpace(text)
		}
	}
	return said
}

// row is what came of a version.
type row struct {
	release string
	results []result
}

func (r *row) ok() bool {
	for i := range r.results {
		if !r.results[i].ok() {
			return false
		}
	}
	return true
}

// formatTable is a line for each version, and the tests that it leaves out.
func formatTable(chosen []area, rows []row) (string, error) {
	var table, leftOut, out strings.Builder
	table.WriteString("PostgreSQL")
	for _, a := range chosen {
		table.WriteString("\t" + a.name)
	}
	table.WriteString("\ttests\tleft out\n")
	for i := range rows {
		r := &rows[i]
		passed, without := 0, 0
		table.WriteString(r.release)
		for j := range r.results {
			table.WriteString("\t" + r.results[j].String())
			passed += r.results[j].passed
			without += len(r.results[j].leftOut)
			for _, test := range r.results[j].leftOut {
				leftOut.WriteString("left out on " + r.release + ": " + test + "\n")
			}
		}
		fmt.Fprintf(&table, "\t%d\t%d\n", passed, without)
	}
	columns := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	if _, err := columns.Write([]byte(table.String())); err != nil {
		return "", fmt.Errorf("lay the table out: %w", err)
	}
	if err := columns.Flush(); err != nil {
		return "", fmt.Errorf("lay the table out: %w", err)
	}
	return out.String() + leftOut.String(), nil
}
