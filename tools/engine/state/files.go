package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// files is the store of file://.
type files struct{ root string }

// What is written aside is in a folder of its own, so that what a killed process leaves there can be told and removed.
const asideFolder = ".pulumi/kindstack-tmp"

const asideLifetime = time.Hour

// The CLI keeps what its library knows of a file, such as a checksum, in one beside it. That is no file of a backend.
const attributes = ".attrs"

func openFiles(root string) files {
	f := files{filepath.Clean(root)}
	entries, _ := os.ReadDir(f.path(asideFolder))
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > asideLifetime {
			_ = os.Remove(filepath.Join(f.path(asideFolder), entry.Name()))
		}
	}
	return f
}

func (f files) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) }

func (f files) Read(_ context.Context, key string) ([]byte, error) {
	data, err := os.ReadFile(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	return data, err
}

// Write writes aside and renames: readers see the old or the new content, also when writing fails.
func (f files) Write(_ context.Context, key string, data []byte) error {
	aside, err := f.writeAside(data)
	if err != nil {
		return f.cannotWrite(key, err)
	}
	err = inFolder(os.Rename, aside, f.path(key))
	if err != nil {
		_ = os.Remove(aside)
	}
	return f.cannotWrite(key, err)
}

// cannotWrite names the file that was to be written, not the one aside, whose name is another at each try: conditions show
// the text, and one that changes is written at each try as well.
func (f files) cannotWrite(key string, err error) error {
	if link, isLink := errors.AsType[*os.LinkError](err); isLink {
		err = link.Err
	} else if path, isPath := errors.AsType[*fs.PathError](err); isPath {
		err = path.Err
	}
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "write", Path: f.path(key), Err: err}
}

// Create gives what was written aside a second name, which no other file may have.
func (f files) Create(_ context.Context, key string, data []byte) (bool, error) {
	aside, err := f.writeAside(data)
	if err != nil {
		return false, f.cannotWrite(key, err)
	}
	defer func() { _ = os.Remove(aside) }()
	err = inFolder(os.Link, aside, f.path(key))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = inFolder(func(_, to string) error { return createExclusively(to, data) }, aside, f.path(key))
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, f.cannotWrite(key, err)
}

// createExclusively is for volumes on which a file has one name.
func createExclusively(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

func (f files) writeAside(data []byte) (string, error) {
	folder := f.path(asideFolder)
	aside, err := os.CreateTemp(folder, "*")
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(folder, 0o700); err == nil {
			aside, err = os.CreateTemp(folder, "*")
		}
	}
	if err != nil {
		return "", err
	}
	_, err = aside.Write(data)
	if err = errors.Join(err, aside.Close()); err != nil {
		_ = os.Remove(aside.Name())
	}
	return aside.Name(), err
}

// Copy gives a file a second name where the volume can do that: files are replaced, never written to.
func (f files) Copy(ctx context.Context, from, to string) error {
	err := inFolder(os.Link, f.path(from), f.path(to))
	if err == nil {
		return nil
	}
	data, err := f.Read(ctx, from)
	if err != nil {
		return err
	}
	return f.Write(ctx, to, data)
}

// inFolder makes the folder of a new name if it is missing. To delete a folder's last file removes it meanwhile.
func inFolder(name func(from, to string) error, from, to string) error {
	for try := 0; ; try++ {
		err := name(from, to)
		if !errors.Is(err, fs.ErrNotExist) || try == 3 {
			return err
		}
		if err := makeFolder(filepath.Dir(to)); err != nil {
			return err
		}
	}
}

// makeFolder tries at once what nearly always succeeds: the folder above is there.
func makeFolder(path string) error {
	if err := syscall.Mkdir(path, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return os.MkdirAll(path, 0o700)
}

// Delete removes a folder with its last file: each takes one of the volume's inodes. Unlike os.Remove, it does not try each name
// as a file and as a folder, and looks for what lies beside a file only where there was one.
func (f files) Delete(_ context.Context, keys ...string) error {
	deleted := map[string][]string{}
	for _, key := range keys {
		path := f.path(key)
		if wasThere, err := unlink(path); err != nil {
			return err
		} else if wasThere {
			deleted[filepath.Dir(path)] = append(deleted[filepath.Dir(path)], path)
		}
	}
	for folder, paths := range deleted {
		if syscall.Rmdir(folder) == nil {
			continue // there was nothing beside them
		}
		hasAttributes := false
		for _, path := range paths {
			wasThere, err := unlink(path + attributes)
			if err != nil {
				return err
			}
			hasAttributes = hasAttributes || wasThere
		}
		if hasAttributes {
			_ = syscall.Rmdir(folder)
		}
	}
	return nil
}

// unlink returns whether there was such a file.
func unlink(path string) (wasThere bool, err error) {
	err = syscall.Unlink(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return true, nil
}

func (f files) DeleteAll(_ context.Context, folders ...string) error {
	for _, folder := range folders {
		if err := os.RemoveAll(f.path(folder)); err != nil {
			return err
		}
	}
	return nil
}

func (f files) List(_ context.Context, folder string) ([]File, error) {
	entries, err := os.ReadDir(f.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []File
	for _, entry := range entries {
		if entry.IsDir() || strings.HasSuffix(entry.Name(), attributes) {
			continue
		}
		file := File{Name: entry.Name()}
		if info, err := entry.Info(); err == nil {
			file.Size = info.Size()
		}
		list = append(list, file)
	}
	return list, err
}

func (f files) AtOnce(_ context.Context, read func(Store) error) error { return read(f) }
