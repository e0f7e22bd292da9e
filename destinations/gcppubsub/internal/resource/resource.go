// Package resource makes full names, such as projects/PROJECT/topics/NAME.
package resource

import (
	"regexp"
	"strings"
)

var (
	topic        = regexp.MustCompile(`^projects/[^/]+/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)
	subscription = regexp.MustCompile(`^projects/[^/]+/subscriptions/[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)
)

// Topic is the full name of a topic. One that is of another project is full already.
func Topic(project, name string) string { return full(project, "topics", name) }

// Subscription is the full name of a subscription, as Topic is of a topic.
func Subscription(project, name string) string { return full(project, "subscriptions", name) }

func full(project, kind, name string) string {
	if strings.HasPrefix(name, "projects/") {
		return name
	}
	return "projects/" + project + "/" + kind + "/" + name
}

// IsTopic reports whether a full name can be a topic's.
func IsTopic(name string) bool { return topic.MatchString(name) }

// IsSubscription reports whether a full name can be a subscription's.
func IsSubscription(name string) bool { return subscription.MatchString(name) }
