package doctor

import (
	"fmt"
	"strings"
)

// Severity says how bad a finding is.
type Severity int

// The severities.
const (
	// OK means that nothing is wrong.
	OK Severity = iota
	// Note is worth knowing and needs no action, or says what could not be checked.
	Note
	// Warning will cause trouble: act soon.
	Warning
	// Problem stops events or loses them: act now.
	Problem
)

var severities = [...]string{OK: "ok", Note: "note", Warning: "warning", Problem: "problem"}

// String returns the severity as one word.
func (s Severity) String() string {
	if s < OK || s > Problem {
		return fmt.Sprintf("severity %d", int(s))
	}
	return severities[s]
}

// MarshalText returns the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the word.
func (s *Severity) UnmarshalText(text []byte) error {
	for i, word := range severities {
		if word == string(text) {
			*s = Severity(i)
			return nil
		}
	}
	return fmt.Errorf("outbox: there is no severity %q; there are %s", text, strings.Join(severities[:], ", "))
}

// Finding is one result of a check.
type Finding struct {
	// Check is the name of the check; docs/doctor.md has a section for each.
	Check string `json:"check"`
	// Severity says how bad it is.
	Severity Severity `json:"severity"`
	// Seen describes what the check saw.
	Seen string `json:"seen"`
	// Do says what to do, as a command or a statement where possible; empty if there is nothing to do.
	Do string `json:"do,omitempty"`
}

// Report is the result of an examination. It has at least one finding of each check that ran, in the order of Checks.
type Report struct {
	// Target names the outbox.
	Target string `json:"target"`
	// Server is the server's version.
	Server string `json:"server"`
	// Findings are the results of the checks.
	Findings []Finding `json:"findings"`
}

// Worst returns the severity of the worst finding.
func (r Report) Worst() Severity {
	worst := OK
	for i := range r.Findings {
		worst = max(worst, r.Findings[i].Severity)
	}
	return worst
}

// Count returns the number of findings of a severity.
func (r Report) Count(severity Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == severity {
			n++
		}
	}
	return n
}
