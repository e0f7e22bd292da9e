package file

// OpenWatched opens a file, with watch before it.
func OpenWatched(path string, watch func(DiskFile) DiskFile) (*Publisher, error) {
	out := &disk{config: Config{Path: path}}
	if err := out.open(); err != nil {
		return nil, err
	}
	out.handle = watch(out.handle)
	return NewWriter(out), nil
}

// DiskFile is what the publisher uses of its file.
type DiskFile = diskFile
