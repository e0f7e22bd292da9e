package pgserver

// Server settings: the set for throw-away clusters, and how settings are written for the server.

import (
	"maps"
	"slices"
	"strings"
)

// TestSettings returns settings for data that may be lost: nothing waits for the disk, and there is room for the
// connections of many tests at once. The map is the caller's to change.
func TestSettings() map[string]string {
	return map[string]string{
		"fsync":                     "off",
		"full_page_writes":          "off",
		"synchronous_commit":        "off",
		"max_connections":           "300",
		"max_prepared_transactions": "50",
		"shared_buffers":            "128MB",
		"autovacuum":                "on",
	}
}

// formatSettings writes settings as lines of postgresql.conf, sorted, so that equal settings give equal text.
func formatSettings(settings map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text.WriteString(name + " = '" + strings.ReplaceAll(settings[name], "'", "''") + "'\n")
	}
	return text.String()
}
