package registry

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Topics are the names of the topics in Pub/Sub.
type Topics struct {
	// Domain is for what happens to orders, licences and media.
	Domain string
	// Analytics is for ads.
	Analytics string
	// Notifications is for messages to people.
	Notifications string
	// Billing is for money.
	Billing string
}

// DefaultTopics returns the default names.
func DefaultTopics() Topics {
	return Topics{
		Domain: "pf-domain-events", Analytics: "pf-analytics-events",
		Notifications: "pf-notification-events", Billing: "pf-billing-events",
	}
}

// Names returns the topics' names.
func (t Topics) Names() []string { return []string{t.Domain, t.Analytics, t.Notifications, t.Billing} }

// topicName matches the names that Pub/Sub accepts.
var topicName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

// CheckTopic refuses a name that Pub/Sub would refuse: every event of the topic would be dead.
func CheckTopic(name string) error {
	if !topicName.MatchString(name) || strings.HasPrefix(name, "goog") {
		return fmt.Errorf("%q cannot be the name of a Pub/Sub topic: "+
			"3 to 255 letters, digits and ._~+%%-, beginning with a letter and not with goog", name)
	}
	return nil
}

func (t Topics) check() error {
	var errs []error
	for _, name := range t.Names() {
		errs = append(errs, CheckTopic(name))
	}
	return errors.Join(errs...)
}
