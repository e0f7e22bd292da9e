package chaos

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestCheckerFails gives the checker histories in which something went wrong: a checker that cannot fail proves nothing.
func TestCheckerFails(t *testing.T) {
	t.Parallel()
	a, b, c, stranger := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	killed, later := &Incarnation{Name: "a.1", Fault: 1}, &Incarnation{Name: "b.1", Fault: 2}
	healthy, other := &Incarnation{Name: "a.2"}, &Incarnation{Name: "b.2"}
	for name, test := range map[string]struct {
		deliveries []Delivery
		spoiled    []string
		want       []string // a part of each problem; none means a good history
		twice      int
		perFault   map[int]int
	}{
		"every event once": {
			deliveries: []Delivery{{a, killed}, {b, healthy}, {c, other}},
		},
		"one lost": {
			deliveries: []Delivery{{a, killed}, {b, healthy}},
			want:       []string{"1 of 3 committed events never arrived, such as " + c.String()},
		},
		"one lost in half a line": {
			deliveries: []Delivery{{a, killed}, {b, healthy}},
			spoiled:    []string{`{"id":"01`},
			want:       []string{"never arrived", `may be in {"id":"01`},
		},
		"all lost": {
			want: []string{"3 of 3 committed events never arrived"},
		},
		"one that was rolled back": {
			deliveries: []Delivery{{a, killed}, {b, healthy}, {c, other}, {stranger, healthy}},
			want:       []string{"1 events arrived that were never committed, such as " + stranger.String()},
		},
		"twice, after a kill": {
			deliveries: []Delivery{{a, killed}, {b, healthy}, {c, other}, {a, healthy}},
			twice:      1, perFault: map[int]int{1: 1},
		},
		"twice, and no relay died": {
			deliveries: []Delivery{{a, other}, {b, healthy}, {c, other}, {a, healthy}},
			want:       []string{"1 surplus deliveries are due to no fault, such as " + a.String() + " by b.2, a.2"},
			twice:      1,
		},
		"twice by one relay that did not die": {
			deliveries: []Delivery{{a, healthy}, {b, healthy}, {c, other}, {a, healthy}},
			want:       []string{"due to no fault"},
			twice:      1,
		},
		"twice by one relay that met a fault": {
			deliveries: []Delivery{{a, killed}, {a, killed}, {b, healthy}, {c, other}},
			twice:      1, perFault: map[int]int{1: 1},
		},
		"three times, each killed after the other": {
			deliveries: []Delivery{{a, later}, {a, killed}, {a, other}, {b, healthy}, {c, other}},
			twice:      1, perFault: map[int]int{1: 1, 2: 1},
		},
		"twice by two that were killed: the first is at fault": {
			deliveries: []Delivery{{a, later}, {a, killed}, {b, healthy}, {c, other}},
			twice:      1, perFault: map[int]int{1: 1},
		},
		"a kill, and a duplicate that it does not excuse": {
			deliveries: []Delivery{{a, killed}, {a, other}, {a, healthy}, {b, healthy}, {c, other}},
			want:       []string{"due to no fault"},
			twice:      1, perFault: map[int]int{1: 1},
		},
		"more than was in flight": {
			deliveries: []Delivery{{a, killed}, {b, killed}, {c, killed}, {a, other}, {b, other}, {c, healthy}},
			want:       []string{"fault 1 made 3 surplus deliveries; at most 2 were in flight"},
			twice:      3, perFault: map[int]int{1: 3},
		},
		"half a line is what a kill may leave": {
			deliveries: []Delivery{{a, killed}, {b, healthy}, {c, other}},
			spoiled:    []string{`{"id":"01`},
		},
		"two spoiled lines": {
			deliveries: []Delivery{{a, killed}, {b, healthy}, {c, other}},
			spoiled:    []string{`{"id":"01`, `{"id":"02`},
			want:       []string{"2 lines cannot be read"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := History{
				Committed:  map[uuid.UUID]bool{a: true, b: true, c: true},
				Deliveries: test.deliveries, Spoiled: test.spoiled,
			}
			report := history.Judge()
			problems := report.Problems(Limits{PerFault: 2, Spoiled: 1})
			if len(problems) != len(test.want) {
				t.Fatalf("problems: %q, want %d", problems, len(test.want))
			}
			for i, want := range test.want {
				if !strings.Contains(problems[i], want) {
					t.Errorf("problem %q does not say %q", problems[i], want)
				}
			}
			if report.Twice != test.twice || len(report.PerFault) != len(test.perFault) {
				t.Errorf("twice %d, per fault %v; want %d, %v", report.Twice, report.PerFault, test.twice, test.perFault)
			}
			for fault, want := range test.perFault {
				if report.PerFault[fault] != want {
					t.Errorf("fault %d made %d surplus deliveries, want %d", fault, report.PerFault[fault], want)
				}
			}
		})
	}
}
