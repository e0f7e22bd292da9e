package chaos

// What arrived, read from the destination files as any consumer would read them.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/uuid"
)

// life is where an incarnation begins in its relay's file.
type life struct {
	from int
	of   *Incarnation
}

// readLines returns the deliveries in a file. A line belongs to the life in which it begins; what cannot be read is
// set aside, not guessed at.
func readLines(path string, lives []life) (deliveries []Delivery, spoiled []string, err error) {
	content, err := readIfThere(path)
	if err != nil {
		return nil, nil, err
	}
	offset, current := 0, 0
	for line := range bytes.Lines(content) {
		for current+1 < len(lives) && lives[current+1].from <= offset {
			current++
		}
		offset += len(line)
		var event struct {
			ID uuid.UUID `json:"id"`
		}
		if line[len(line)-1] != '\n' || json.Unmarshal(line, &event) != nil {
			spoiled = append(spoiled, fmt.Sprintf("%s:%d: %s", path, offset-len(line), line))
			continue
		}
		if len(lives) == 0 {
			return nil, nil, fmt.Errorf("%s has lines, but no relay wrote to it", path)
		}
		deliveries = append(deliveries, Delivery{event.ID, lives[current].of})
	}
	return deliveries, spoiled, nil
}

// endOfLines is where the next line begins. Half a line that a killed process left counts to whoever comes next.
func endOfLines(path string) (int, error) {
	content, err := readIfThere(path)
	return bytes.LastIndexByte(content, '\n') + 1, err
}

func readIfThere(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read what arrived: %w", err)
	}
	return content, nil
}

// fileSize is zero for a file that is not there yet.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
