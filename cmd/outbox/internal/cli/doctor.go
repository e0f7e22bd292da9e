package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstore"
)

func newDoctor(a *app) *cobra.Command {
	var from source
	var config doctor.Config
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the outbox and its server, and say what to do",
		Long: `Examines the tables, the server and the events, and says what is wrong and what to do about
it. It changes nothing and can be run at any time. Use the URL of the relays, so that it sees
what they see. It notes what the role may not see; members of pg_monitor see everything.

Producers and relays may have different roles. --for says which of them this role is for;
without it, rights to emit or rights to relay are enough.

Exit codes: 0 nothing above a note, 3 warnings, 4 problems; 2 if the database cannot be
reached.`,
		Example: "  outbox doctor --from postgres://localhost/shop\n  outbox doctor --from postgres://localhost/shop " +
			"--layout modkit --retention 168h --json",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Validate(); err != nil {
				return &usageError{err}
			}
			config.Layout = from.layout
			return from.connected(cmd.Context(), 1, func(found place, pool *pgxpool.Pool) error {
				events, err := found.outbox(pool, "")
				if err != nil {
					return err
				}
				report, err := doctor.Examine(cmd.Context(), events, config)
				if err != nil {
					return err
				}
				if err := a.printExamination(report); err != nil {
					return err
				}
				switch report.Worst() {
				case doctor.Problem:
					return exitError(exitProblems)
				case doctor.Warning:
					return exitError(exitWarnings)
				}
				return nil
			})
		},
	}
	from.flags(cmd)
	f := cmd.Flags()
	listFlag(f, &config.Checks, "check", "`name` of a check to run; may be repeated (default: all)")
	f.StringVar((*string)(&config.For), "for", "", "what the role is for: `emit` or relay (default: either)")
	f.DurationVar(&config.Retention, "retention", doctor.DefaultRetention, "how long delivered events should be kept")
	f.DurationVar(&config.Lease, "lease", pgstore.DefaultLease, "the relays' --lease")
	f.DurationVar(&config.Patience, "patience", doctor.DefaultPatience, "longest time that an event may be due, or a session may wait for a lock")
	f.DurationVar(&config.LongTransaction, "long-transaction", doctor.DefaultLongTransaction, "longest time that a transaction may run")
	return cmd
}

func (a *app) printExamination(report doctor.Report) error {
	if a.json {
		return a.printJSON(struct {
			doctor.Report
			Worst doctor.Severity `json:"worst"`
		}{report, report.Worst()})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, on PostgreSQL %s\n\n", report.Target, report.Server)
	// The worst come first.
	worst := slices.Clone(report.Findings)
	slices.SortStableFunc(worst, func(a, b doctor.Finding) int { return int(b.Severity - a.Severity) })
	for i := range worst {
		writeFinding(&b, &worst[i])
	}
	fmt.Fprintf(&b, "\n%s, %s, %s\n", plural(int64(report.Count(doctor.Problem)), "problem"),
		plural(int64(report.Count(doctor.Warning)), "warning"), plural(int64(report.Count(doctor.Note)), "note"))
	return a.printf("%s", b.String())
}

// The columns of the examination.
const (
	seenColumn = 26
	seenWidth  = 78
)

// writeFinding writes what was seen, wrapped, and under it what to do, in one line that can be
// copied.
func writeFinding(out io.Writer, finding *doctor.Finding) {
	indent := strings.Repeat(" ", seenColumn)
	head := fmt.Sprintf("%-*s", seenColumn, fmt.Sprintf("%-9s %s", finding.Severity, finding.Check))
	for _, line := range wrap(finding.Seen, seenWidth) {
		_, _ = fmt.Fprintf(out, "%s%s\n", head, line) // to memory
		head = indent
	}
	if finding.Do != "" {
		_, _ = fmt.Fprintf(out, "%s-> %s\n", indent, finding.Do)
	}
}

// wrap breaks a text into lines of at most so many bytes, unless a word is longer.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
