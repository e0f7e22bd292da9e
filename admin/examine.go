package admin

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/packfinderz/outbox/ops/doctor"
)

const examineTime = 45 * time.Second

// doctorPage shows what is wrong, the worst first.
func (c *Console) doctorPage(w http.ResponseWriter, r *request) error {
	report, err := c.examine(r)
	if err != nil {
		return err
	}
	slices.SortStableFunc(report.Findings, func(a, b doctor.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return c.render(w, r, http.StatusOK, "doctor", "Doctor", report)
}

// examine calls the doctor, one call at a time.
func (c *Console) examine(r *request) (doctor.Report, error) {
	ctx := r.Context()
	select {
	case r.outbox.examining <- struct{}{}:
		defer func() { <-r.outbox.examining }()
	case <-ctx.Done():
		return doctor.Report{}, ctx.Err()
	}
	return doctor.Examine(ctx, r.outbox.Outbox.Outbox, c.doctor)
}
