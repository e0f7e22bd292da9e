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

// notice is a message and its audience.
type notice struct{ audience, message string }

// noticeOf notifies admins of licences to review, and the store of decisions.
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
