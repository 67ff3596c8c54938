package state

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func writeLock(t *testing.T, root string, content string) {
	t.Helper()
	folder := filepath.Join(root, lockFolder("a"))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "other.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func lockOf(t *testing.T, pid int, held *lease) string {
	t.Helper()
	data, err := json.Marshal(lockContent{Pid: pid, Username: "ada", Hostname: "laptop", Timestamp: time.Now(), Kindstack: held})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestALockCountsAsLongAsItsHolderMayLive(t *testing.T) {
	own := identity(os.Getpid())
	elsewhere := "another-boot/another-namespace/1"
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for name, test := range map[string]struct {
		lock   string
		locked bool
	}{
		"of a person, however old":                   {lockOf(t, 1, nil), true},
		"of this session":                            {lockOf(t, 1, &lease{Session: "mine", Until: later}), false},
		"of a process that lives":                    {lockOf(t, os.Getpid(), &lease{Session: "s", Process: own, Until: before}), true},
		"of a process whose number is another's now": {lockOf(t, os.Getpid(), &lease{Session: "s", Process: own + "0", Until: later}), false},
		"of another machine, within its lease":       {lockOf(t, 1, &lease{Session: "s", Process: elsewhere, Until: later}), true},
		"of another machine, after its lease":        {lockOf(t, 1, &lease{Session: "s", Process: elsewhere, Until: before}), false},
		"that is empty":                              {"", false},
		"that is torn":                               {`{"pid":1,"us`, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			writeLock(t, root, test.lock)
			stacks, warnings := open(t, root, "mine")
			unlock, err := stacks.Lock(context.Background(), "a")
			if locked, isLocked := errors.AsType[*LockedError](err); isLocked != test.locked {
				t.Fatalf("%v", err)
			} else if isLocked {
				if files, _ := stacks.store.List(context.Background(), lockFolder("a")); len(files) != 1 {
					t.Fatalf("its own lock was left: %v", files)
				}
				t.Log(locked)
				return
			}
			unlock()
			if len(*warnings) != 1 {
				t.Fatalf("%v", *warnings)
			}
		})
	}
}

func TestALockThatIsHeldKeepsOthersAway(t *testing.T) {
	root := t.TempDir()
	one, _ := open(t, root, "one")
	other, _ := open(t, root, "other")
	unlock, err := one.Lock(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Lock(context.Background(), "a"); err == nil {
		t.Fatal("both have the lock")
	}
	unlock()
	unlock, err = other.Lock(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// slowStore takes a second to write, and notes what it has done.
type slowStore struct {
	files
	mutex sync.Mutex
	done  []string
}

func (s *slowStore) note(what string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.done = append(s.done, what)
}

func (s *slowStore) Write(ctx context.Context, key string, data []byte) error {
	time.Sleep(time.Second)
	defer s.note("write")
	return s.files.Write(ctx, key, data)
}

func (s *slowStore) Delete(ctx context.Context, keys ...string) error {
	defer s.note("delete")
	return s.files.Delete(ctx, keys...)
}

func TestALockIsReleasedAfterItsRenewal(t *testing.T) {
	store := &slowStore{files: openFiles(t.TempDir())}
	synctest.Test(t, func(t *testing.T) {
		stacks := New(store, NewHolder("s", func(string, map[string]any) {}), Provider{})
		unlock, err := stacks.Lock(context.Background(), "a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(lockLease - renewBefore + time.Second/2) // the renewal is on its way
		unlock()
		time.Sleep(lockLease)
		if got := strings.Join(store.done, " "); got != "write write delete" {
			t.Error(got)
		}
	})
}

// lossyStore loses the connection of its second write, the first renewal of a lock.
type lossyStore struct {
	files
	writes atomic.Int32
}

func (s *lossyStore) Write(ctx context.Context, key string, data []byte) error {
	if s.writes.Add(1) == 2 {
		time.Sleep(answerTimeout)
		return errors.New("i/o timeout")
	}
	return s.files.Write(ctx, key, data)
}

func TestALockIsRenewedBesideARenewalThatHangs(t *testing.T) {
	store := &lossyStore{files: openFiles(t.TempDir())}
	synctest.Test(t, func(t *testing.T) {
		stacks := New(store, NewHolder("s", func(string, map[string]any) {}), Provider{})
		unlock, err := stacks.Lock(context.Background(), "a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(lockLease + time.Second)
		locks, _ := store.List(context.Background(), lockFolder("a"))
		data, err := store.Read(context.Background(), lockFolder("a")+"/"+locks[0].Name)
		var lock lockContent
		if err != nil || json.Unmarshal(data, &lock) != nil || !lock.Kindstack.Until.After(time.Now()) {
			t.Errorf("%s, %v", data, err)
		}
		unlock()
	})
}
