//go:build unix

package chaos

import "os"

// inbox is where events arrive.
type inbox interface {
	// open lets a new life of a relay deliver. It returns what to say to --to and, if that is standard output, what to
	// give the process as such.
	open(relay *relay, life *Incarnation) (to string, stdout *os.File, err error)
	// size grows with everything that a relay delivers, about lineBytes for each event.
	size(relay *relay) int64
	// letters gets a value when something arrives; nil if that is not told.
	letters() <-chan struct{}
	// deliveries are what arrived so far, and lines that cannot be read.
	deliveries() (arrived []Delivery, spoiled []string, err error)
}
