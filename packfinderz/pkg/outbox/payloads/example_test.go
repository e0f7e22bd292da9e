package payloads_test

import (
	"fmt"

	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// A consumer reads what the publisher has checked.
func ExampleOpen() {
	stored := []byte(`{
		"version": 1, "eventId": "019a0000-0000-7000-8000-000000000001", "occurredAt": "2026-05-31T12:00:00Z",
		"data": {"licenseId": "019a0000-0000-7000-8000-000000000002", "storeId": "019a0000-0000-7000-8000-000000000003", "status": "rejected", "reason": "unreadable"}
	}`)
	envelope, license, err := payloads.Open[payloads.LicenseStatusChanged](stored)
	fmt.Println(envelope.OccurredAt.Year(), license.Status, license.Reason, err)

	_, _, err = payloads.Open[payloads.LicenseStatusChanged]([]byte(`{"version": 1, "eventId": "x", "occurredAt": "2026-05-31T12:00:00Z", "data": {}}`))
	fmt.Println(err)
	// Output:
	// 2026 rejected unreadable <nil>
	// licenseId is missing
	// storeId is missing
	// status is ""; it can be one of ["pending" "verified" "rejected"]
}
