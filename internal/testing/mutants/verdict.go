package main

import (
	"fmt"
	"strings"
	"time"
)

// verdict is what became of one fault.
type verdict struct {
	patch  patch
	killed bool
	// why says what happened instead, if it was not killed.
	why string
	// output is what the test printed, if it was not killed.
	output string
	took   time.Duration
}

// judge reads what go test printed with the fault in the code. Only the named test ran, so
// that a panic is its doing too; but a fault that does not compile, or a test that hangs,
// has shown nothing.
func judge(p patch, output string, err error) (killed bool, why string) {
	switch {
	case strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]"):
		return false, "it does not compile"
	case err == nil:
		return false, "the test passes with it"
	case strings.Contains(output, "panic: test timed out"):
		return false, "the test hangs with it"
	case hasResult(output, "FAIL", p.test), strings.Contains(output, "\npanic: "):
		return true, ""
	}
	return false, "go test failed otherwise"
}

// hasResult reports whether a test ended so, as go test -v prints it.
func hasResult(output, result, test string) bool {
	return strings.Contains(output, "--- "+result+": "+test+" (")
}

// String is the verdict in a line.
func (v verdict) String() string {
	if v.killed {
		return fmt.Sprintf("killed    %4.0f s  %s  by %s", v.took.Seconds(), v.patch.name, v.patch.test)
	}
	return fmt.Sprintf("NOT KILLED %3.0f s  %s  %s: %s", v.took.Seconds(), v.patch.name, v.patch.test, v.why)
}

// summarise prints the sums of each area, and fails if a fault lives.
func summarise(verdicts []verdict, took time.Duration) error {
	var areas []string
	killed, all := make(map[string]int), make(map[string]int)
	alive := 0
	for _, v := range verdicts {
		area := v.patch.area()
		if all[area]++; all[area] == 1 {
			areas = append(areas, area)
		}
		if v.killed {
			killed[area]++
			continue
		}
		alive++
		fmt.Printf("\n%s\nFault: %s\n%s\n", v, v.patch.fault, v.output)
	}
	fmt.Println()
	for _, area := range areas {
		fmt.Printf("%-12s %3d of %3d killed\n", area, killed[area], all[area])
	}
	fmt.Printf("%-12s %3d of %3d killed, %s\n", "all", len(verdicts)-alive, len(verdicts), took.Round(time.Second))
	if alive > 0 {
		return fmt.Errorf("%d of %d faults not killed", alive, len(verdicts))
	}
	return nil
}

// tail is the end of a long text.
func tail(text string) string {
	const most = 6000
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}
