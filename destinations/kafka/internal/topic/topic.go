// Package topic knows the names that topics can have.
package topic

import "fmt"

const longest = 249

// Check refuses a name that no topic can have.
func Check(name string) error {
	legal := name != "" && len(name) <= longest && name != "." && name != ".."
	for _, r := range name {
		legal = legal && (r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if !legal {
		return fmt.Errorf("topic %.100q cannot be one of Kafka's: up to %d letters, digits, dots, hyphens and underscores", name, longest)
	}
	return nil
}
