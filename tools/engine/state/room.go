package state

import "syscall"

// room is how many files and bytes histories may have: half of the volume, where there is one.
func room(store Store) (count, size int64, isLimited bool) {
	f, isFiles := store.(files)
	if !isFiles {
		return 0, 0, false
	}
	var volume syscall.Statfs_t
	if err := syscall.Statfs(f.root, &volume); err != nil {
		return 0, 0, false
	}
	count = int64(volume.Files) / 2
	if count == 0 {
		count = 1 << 62 // a file system that makes inodes as they are needed
	}
	return count, int64(volume.Blocks) * int64(volume.Bsize) / 2, true
}
