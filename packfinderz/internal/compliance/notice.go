package compliance

import (
	"fmt"

	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// The audiences of a notice: values of notification_audience_enum.
const (
	audienceAdmin = "admin"
	audienceStore = "store"
)

// notice is who is told of a change, and what.
type notice struct{ audience, message string }

// noticeOf is the rule: admins are told of what waits for them, the store of what was decided.
func noticeOf(change *payloads.LicenseStatusChanged) (notice, error) {
	//exhaustive:enforce
	switch change.Status {
	case payloads.LicensePending:
		return notice{audienceAdmin, "A licence was uploaded and waits for review."}, nil
	case payloads.LicenseVerified:
		return notice{audienceStore, "Your licence was verified."}, nil
	case payloads.LicenseRejected:
		if change.Reason == "" {
			return notice{audienceStore, "Your licence was rejected."}, nil
		}
		return notice{audienceStore, "Your licence was rejected: " + change.Reason}, nil
	}
	return notice{}, fmt.Errorf("nobody is told of the status %q", change.Status)
}
