//go:build unix

package chaos

// Files as destinations, one for each relay, read in the end as any consumer would read them. A file says nothing of
// the order between two relays.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"
)

// files is a folder with a file for each relay.
type files struct {
	folder string
	lives  map[string][]life // by path
}

// life is where an incarnation begins in its relay's file.
type life struct {
	from int
	of   *Incarnation
}

func newFiles(folder string) *files { return &files{folder: folder, lives: make(map[string][]life)} }

func (f *files) path(relay *relay) string { return filepath.Join(f.folder, relay.name+".jsonl") }

func (f *files) open(relay *relay, of *Incarnation) (to string, stdout *os.File, err error) {
	path := f.path(relay)
	from, err := endOfLines(path)
	if err != nil {
		return "", nil, err
	}
	f.lives[path] = append(f.lives[path], life{from, of})
	return "file:" + path, nil, nil
}

// size is zero for a file that is not there yet.
func (f *files) size(relay *relay) int64 {
	info, err := os.Stat(f.path(relay))
	if err != nil {
		return 0
	}
	return info.Size()
}

// letters is nil: nobody tells of a file that grows.
func (f *files) letters() <-chan struct{} { return nil }

func (f *files) deliveries() (arrived []Delivery, spoiled []string, err error) {
	for path, lives := range f.lives {
		deliveries, unread, err := readLines(path, lives)
		if err != nil {
			return nil, nil, err
		}
		arrived, spoiled = append(arrived, deliveries...), append(spoiled, unread...)
	}
	return arrived, spoiled, nil
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
		deliveries = append(deliveries, Delivery{ID: event.ID, By: lives[current].of})
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
