package dest

// OpenWatched opens file:path, with watch before its file.
func OpenWatched(path string, watch func(DiskFile) DiskFile) (Destination, error) {
	out := &file{filePath: filePath{path: path}}
	if err := out.open(); err != nil {
		return nil, err
	}
	out.handle = watch(out.handle)
	return newLines(out), nil
}

// DiskFile is what the destination uses of its file.
type DiskFile = diskFile
