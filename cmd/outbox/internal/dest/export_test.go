package dest

// OpenWatched opens file:path, with watch before its file.
func OpenWatched(path string, watch func(DiskFile) DiskFile) (Destination, error) {
	file, err := openFile(path)
	if err != nil {
		return nil, err
	}
	watched := watch(file)
	return newLines(watched, watched), nil
}

// DiskFile is what the destination uses of its file.
type DiskFile = diskFile
