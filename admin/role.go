package admin

import (
	"fmt"
	"strings"
)

// Role is what somebody may do.
type Role int

// Each role may do what those before it may.
const (
	// Nobody may not even look.
	Nobody Role = iota
	// Viewer may look.
	Viewer
	// Operator may also retry, replay, hold and release.
	Operator
)

// ParseRole reads a role's name.
func ParseRole(name string) (Role, error) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "viewer":
		return Viewer, nil
	case "operator":
		return Operator, nil
	}
	return Nobody, fmt.Errorf("there is no role %q; choose viewer or operator", name)
}

// String is the role's name.
func (r Role) String() string {
	switch r {
	case Viewer:
		return "viewer"
	case Operator:
		return "operator"
	}
	return "nobody"
}

// Identity is who makes a request.
type Identity struct {
	// Name is what the audit calls them.
	Name string
	// Role is what they may do.
	Role Role
}
