package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/packfinderz/outbox/ops/doctor"
)

// examineTime bounds an examination.
const examineTime = 45 * time.Second

// doctorPage shows what is wrong, the worst first.
func (c *Console) doctorPage(w http.ResponseWriter, r *request) error {
	report, err := r.examine()
	if err != nil {
		return err
	}
	slices.SortStableFunc(report.Findings, func(a, b doctor.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return c.render(w, r, http.StatusOK, "doctor", "Doctor", report)
}

// examine calls the doctor, one call at a time.
func (r *request) examine() (doctor.Report, error) {
	if r.target.Examine == nil {
		return doctor.Report{}, notFound("No doctor was called to this console; use outbox doctor.")
	}
	ctx, cancel := context.WithTimeout(r.Context(), examineTime)
	defer cancel()
	select {
	case r.target.examining <- struct{}{}:
		defer func() { <-r.target.examining }()
	case <-ctx.Done():
		return doctor.Report{}, ctx.Err()
	}
	return r.target.Examine(ctx)
}
