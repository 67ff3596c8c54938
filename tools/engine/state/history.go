package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/backend"
)

// Entry is one update in a stack's history. The CLI reads and writes all but what it does not know.
type Entry struct {
	backend.UpdateInfo
	// Changes are of resources, in the order of their names. No change is another thing than an update that does not tell.
	Changes []Change `json:"changes,omitzero"`
	// Unfinished are the changes that failed, or wait.
	Unfinished []Change `json:"unfinished,omitempty"`
	// Waiting tells of an update that has not failed but waits for something else to end.
	Waiting bool `json:"waiting,omitempty"`
}

// HistoryLimit is how many updates a stack's history has at most. The CLI never removes one.
const HistoryLimit = 20

// An update has two files: what it did, and the checkpoint that it left.
const filesPerEntry = 2

var historyFile = regexp.MustCompile(`-(\d+)\.(history|checkpoint)\.json(\.gz|\.zst)?$`)

func historyFolder(name string) string { return ".pulumi/history/" + Project + "/" + name }

// sharing keeps the histories of all stacks small: each has at most its share of what the volume has room for.
type sharing struct {
	sync.Mutex
	// The stacks, in turn; none until they were counted.
	names []string
	// By name, where it is among these.
	known map[string]int
	// The next stack whose history is made smaller though it was not updated, and how many are still to be.
	next, left int
}

// add makes the shares smaller, and so the histories of all stacks.
func (s *sharing) add(names ...string) {
	for _, name := range names {
		if _, isKnown := s.known[name]; !isKnown {
			s.known[name] = len(s.names)
			s.names = append(s.names, name)
			s.left = len(s.names)
		}
	}
}

// remove leaves the order to the next ones.
func (s *sharing) remove(name string) {
	at, isKnown := s.known[name]
	if !isKnown {
		return
	}
	last := len(s.names) - 1
	s.names[at] = s.names[last]
	s.known[s.names[at]] = at
	s.names = s.names[:last]
	delete(s.known, name)
}

// Append adds an entry and the checkpoint that it led to, and removes the oldest ones. It is for the holder of the stack's
// lock.
func (s *Stacks) Append(ctx context.Context, name string, entry *Entry) error {
	entry.Environment = map[string]string{}
	data, err := compact{}.Marshal(entry)
	if err != nil {
		return err
	}
	start := fmt.Sprintf("%s/%s-%d", historyFolder(name), name, time.Now().UnixNano())
	entries, bytes := s.historyShare(ctx, name)
	if entries > 0 {
		err = s.store.Write(ctx, start+".history.json", data)
		if err == nil {
			err = useCheckpoint(name, func(key string) error { return s.store.Copy(ctx, key, start+".checkpoint.json") })
		}
	}
	for _, stack := range s.historiesToCut(name) {
		if cut := s.cutHistory(ctx, stack, entries, bytes); err == nil {
			err = cut
		}
	}
	return err
}

// historyShare is how many entries and bytes the history of one stack may have.
func (s *Stacks) historyShare(ctx context.Context, name string) (entries int, bytes int64) {
	files, size, isLimited := room(s.store)
	if !isLimited {
		return HistoryLimit, 1 << 62
	}
	s.sharing.Lock()
	defer s.sharing.Unlock()
	if s.sharing.known != nil {
		s.sharing.add(name)
	} else if names, err := s.Names(ctx); err == nil {
		s.sharing.known = map[string]int{}
		s.sharing.add(names...)
	}
	stacks := int64(max(len(s.sharing.names), 1))
	return int(min(files/filesPerEntry/stacks, HistoryLimit)), size / stacks
}

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

// historiesToCut are of a stack that was updated and, as shares became smaller with more stacks, of another one in turn.
func (s *Stacks) historiesToCut(updated string) []string {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	if s.sharing.left == 0 || len(s.sharing.names) == 0 {
		return []string{updated}
	}
	s.sharing.left--
	s.sharing.next = (s.sharing.next + 1) % len(s.sharing.names)
	return []string{updated, s.sharing.names[s.sharing.next]}
}

// cutHistory removes the oldest entries of a stack's history.
func (s *Stacks) cutHistory(ctx context.Context, name string, entries int, bytes int64) error {
	files, err := s.store.List(ctx, historyFolder(name))
	if err != nil {
		return err
	}
	updates := map[string][]File{}
	for _, file := range files {
		if parts := historyFile.FindStringSubmatch(file.Name); parts != nil {
			updates[parts[1]] = append(updates[parts[1]], file)
		}
	}
	newestFirst := func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) }
	var keys []string
	size := int64(0)
	for i, time := range slices.SortedFunc(maps.Keys(updates), newestFirst) {
		for _, file := range updates[time] {
			size += file.Size
		}
		if i < entries && size <= bytes {
			continue
		}
		for _, file := range updates[time] {
			keys = append(keys, historyFolder(name)+"/"+file.Name)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return s.store.Delete(ctx, keys...)
}

// History returns the newest updates of a stack, the newest first; nil for a stack that does not exist.
func (s *Stacks) History(ctx context.Context, name string) ([]Entry, error) {
	_, err := s.read(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	var files []File
	if err == nil {
		files, err = s.store.List(ctx, historyFolder(name))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the history of the stack %s: %w", name, err)
	}
	files = slices.DeleteFunc(files, func(file File) bool {
		parts := historyFile.FindStringSubmatch(file.Name)
		return parts == nil || parts[2] != "history"
	})
	entries, checkpoints := []Entry{}, []string{}
	for _, file := range slices.Backward(files) {
		data, err := s.store.Read(ctx, historyFolder(name)+"/"+file.Name)
		if errors.Is(err, ErrNotFound) {
			continue // it was removed at this moment
		}
		var entry Entry
		if err == nil {
			err = marshalerOf(data).Unmarshal(data, &entry)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the history of the stack %s: %w", name, err)
		}
		entries = append(entries, entry)
		checkpoints = append(checkpoints, historyFolder(name)+"/"+strings.Replace(file.Name, ".history.", ".checkpoint.", 1))
	}
	s.addChanges(ctx, entries, checkpoints)
	// The CLI does not number them.
	for i := range entries {
		entries[i].Version = len(entries) - i
	}
	return entries, nil
}
