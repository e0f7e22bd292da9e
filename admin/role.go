package admin

import (
	"fmt"
	"strings"
)

// Role says what a user may do.
type Role int

// The roles. Each may do what the ones before it may.
const (
	// Nobody has no rights.
	Nobody Role = iota
	// Viewer may look at events.
	Viewer
	// Operator may also retry, replay, hold and release them.
	Operator
)

// ParseRole parses the name of a role.
func ParseRole(name string) (Role, error) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "viewer":
		return Viewer, nil
	case "operator":
		return Operator, nil
	}
	return Nobody, fmt.Errorf("there is no role %q; choose viewer or operator", name)
}

// String returns the role's name.
func (r Role) String() string {
	switch r {
	case Viewer:
		return "viewer"
	case Operator:
		return "operator"
	}
	return "nobody"
}

// Identity is the user of a request.
type Identity struct {
	// Name is the user's name in the audit log.
	Name string
	// Role says what the user may do.
	Role Role
}
