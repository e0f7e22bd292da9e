package doctor

import (
	"fmt"
	"strings"
)

// Severity is how bad a finding is.
type Severity int

// How bad a finding is.
const (
	// OK is what is as it should be.
	OK Severity = iota
	// Note is worth knowing, and needs nobody now; also what could not be looked at.
	Note
	// Warning will cause trouble: do something soon.
	Warning
	// Problem stops events, or loses them: do something now.
	Problem
)

var severities = [...]string{OK: "ok", Note: "note", Warning: "warning", Problem: "problem"}

// String is the severity in one word.
func (s Severity) String() string {
	if s < OK || s > Problem {
		return fmt.Sprintf("severity %d", int(s))
	}
	return severities[s]
}

// MarshalText makes a severity its word in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *Severity) UnmarshalText(text []byte) error {
	for i, word := range severities {
		if word == string(text) {
			*s = Severity(i)
			return nil
		}
	}
	return fmt.Errorf("outbox: there is no severity %q; there are %s", text, strings.Join(severities[:], ", "))
}

// Finding is one thing that a check saw.
type Finding struct {
	// Check is the name of the check; docs/doctor.md has a section for each.
	Check string `json:"check"`
	// Severity is how bad it is.
	Severity Severity `json:"severity"`
	// Seen is what was seen, with numbers.
	Seen string `json:"seen"`
	// Do is what to do about it, where possible as a command or a statement; empty if nothing is.
	Do string `json:"do,omitempty"`
}

// Report is what an examination saw: at least one finding for each check that was made, in
// the order of Checks.
type Report struct {
	// Target is what was examined.
	Target string `json:"target"`
	// Server is the server's version, as it says it.
	Server string `json:"server"`
	// Findings are what was seen.
	Findings []Finding `json:"findings"`
}

// Worst is the severity of the worst finding.
func (r Report) Worst() Severity {
	worst := OK
	for i := range r.Findings {
		worst = max(worst, r.Findings[i].Severity)
	}
	return worst
}

// Count is how many findings have a severity.
func (r Report) Count(severity Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == severity {
			n++
		}
	}
	return n
}
