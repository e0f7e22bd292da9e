package migrations

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// memory is a flat, read-only file system of rendered files.
type memory map[string][]byte

// Open opens a file, or the one folder there is.
func (m memory) Open(name string) (fs.File, error) {
	if name == "." {
		return &folder{files: m, names: slices.Sorted(maps.Keys(m))}, nil
	}
	content, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{info: info{name: name, size: int64(len(content)), mode: 0o444}, Reader: bytes.NewReader(content)}, nil
}

type file struct {
	info
	*bytes.Reader
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }
func (f *file) Size() int64                { return f.size }

// folder lists the files; each ReadDir goes on where the last ended.
type folder struct {
	files memory
	names []string
}

func (f *folder) Stat() (fs.FileInfo, error) { return info{name: ".", mode: fs.ModeDir | 0o555}, nil }
func (f *folder) Close() error               { return nil }

func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: fs.ErrInvalid}
}

func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(f.names) == 0 {
		return nil, io.EOF
	}
	count := len(f.names)
	if n > 0 {
		count = min(n, count)
	}
	entries := make([]fs.DirEntry, count)
	for i, name := range f.names[:count] {
		entries[i] = fs.FileInfoToDirEntry(info{name: name, size: int64(len(f.files[name])), mode: 0o444})
	}
	f.names = f.names[count:]
	return entries, nil
}

type info struct {
	name string
	size int64
	mode fs.FileMode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
