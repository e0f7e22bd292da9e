package file_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/file"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// badDisk is a file on a disk that may fail.
type badDisk struct {
	file.DiskFile
	write atomic.Pointer[func(lines []byte) error]
}

// Write leaves half of a line where it fails, as a full disk does.
func (d *badDisk) Write(lines []byte) (int, error) {
	write := d.write.Load()
	if write == nil {
		return d.DiskFile.Write(lines)
	}
	n, err := d.DiskFile.Write(lines[:len(lines)-5])
	if err == nil {
		err = (*write)(lines)
	}
	return n, err
}

func (d *badDisk) fault(name string, write func(lines []byte) error) outagetest.Fault {
	return outagetest.Fault{
		Name:  name,
		Begin: func(testing.TB) { d.write.Store(&write) },
		End:   func(testing.TB) { d.write.Store(nil) },
	}
}

// full writes to the one device that is always full.
func full(lines []byte) error {
	device, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = device.Close() }() // nothing is in it
	_, err = device.Write(lines)
	return err
}

// steps does one thing after the other, each of which must succeed.
func steps(list ...func() error) func(testing.TB) {
	return func(t testing.TB) {
		t.Helper()
		for _, step := range list {
			if err := step(); err != nil {
				t.Error(err)
			}
		}
	}
}

func rename(from, to string) func() error { return func() error { return os.Rename(from, to) } }

// diary is half a line of somebody else's.
const diary = "dear diary"

// fileDestination is a file and what can happen to it.
func fileDestination(t testing.TB) outagetest.Destination {
	t.Helper()
	above := t.TempDir()
	folder := filepath.Join(above, "folder")
	path, aside, hidden := filepath.Join(folder, "events.jsonl"), filepath.Join(above, "aside"), filepath.Join(above, "hidden")
	disk := &badDisk{}
	goOn := make(chan struct{})
	hung := disk.fault("hung", func([]byte) error {
		<-goOn
		return syscall.EIO
	})
	end := hung.End
	hung.End = func(t testing.TB) {
		t.Helper()
		end(t)
		close(goOn)
	}
	return outagetest.Destination{
		Publisher: func(t testing.TB) outbox.Publisher {
			t.Helper()
			steps(func() error { return os.Mkdir(folder, 0o700) })(t)
			return openWatched(t, path, func(file file.DiskFile) file.DiskFile {
				disk.DiskFile = file
				return disk
			})
		},
		Received: func(t testing.TB) (ids []uuid.UUID) {
			t.Helper()
			for _, name := range []string{aside, path} {
				h := harness{read: func() []byte {
					content, err := os.ReadFile(name)
					if err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
					return content
				}}
				for _, r := range h.Received(t) {
					ids = append(ids, r.ID)
				}
			}
			return ids
		},
		Faults: []outagetest.Fault{
			disk.fault("full", full),
			disk.fault("read-only", func([]byte) error { return syscall.EROFS }),
			hung,
			{Name: "folder renamed", Begin: steps(rename(folder, hidden)), End: steps(rename(hidden, folder))},
			// The next file is made at once.
			{Name: "moved", Slow: true, Begin: steps(rename(path, aside)), End: steps()},
			{
				Name: "deleted", Slow: true, // but for its lines, which the test has to count
				Begin: steps(func() error { return os.Link(path, aside) }, func() error { return os.Remove(path) }), End: steps(),
			},
			{
				Name:  "replaced",
				Begin: steps(func() error { return os.WriteFile(hidden, []byte("dear diary\n"), 0o600) }, func() error { return os.Link(path, aside) }, rename(hidden, path)),
				End:   steps(rename(path, hidden)),
			},
			{
				Name: "written to", Begin: steps(appendTo(path, diary)),
				End: steps(func() error { // what is behind it was not acknowledged
					content, err := os.ReadFile(path)
					if err != nil {
						return err
					}
					return os.Truncate(path, int64(bytes.Index(content, []byte(diary))))
				}),
			},
			{
				Name:  "a folder in its place",
				Begin: steps(rename(path, aside), func() error { return os.Mkdir(path, 0o700) }),
				End:   steps(func() error { return os.Remove(path) }),
			},
		},
	}
}

// TestOutages takes the file away under a relay.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Run(t, fileDestination, "full", "read-only", "hung", "folder renamed", "moved", "deleted", "replaced", "written to", "a folder in its place")
}
