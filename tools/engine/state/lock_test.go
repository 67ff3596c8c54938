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

func TestALockThatWasRemovedIsNotBroughtBack(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		stacks, _ := open(t, root, "s")
		unlock, err := stacks.Lock(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		if err := stacks.Import(ctx, "a", deployment(t, "a", false)); err != nil {
			t.Fatal(err)
		}
		if removed, err := stacks.Unlock(ctx, "a"); len(removed) != 1 || err != nil {
			t.Fatalf("%v, %v", removed, err)
		}
		time.Sleep(lockLease - renewBefore + time.Second) // its renewal was due
		if locks, _ := stacks.store.List(ctx, lockFolder("a")); len(locks) != 0 {
			t.Fatalf("%v", locks)
		}
		if err := stacks.Import(ctx, "a", deployment(t, "a", true)); err == nil || !strings.Contains(err.Error(), "was removed") {
			t.Fatalf("%v", err)
		}
		if err := stacks.Remove(ctx, "a"); err == nil {
			t.Fatal("it was removed")
		}
	})
}

func TestAProcessThatWasFrozenWritesOnlyWhileItsLockIsThere(t *testing.T) {
	ctx := context.Background()
	frozen, _ := open(t, t.TempDir(), "one")
	unlock, err := frozen.Lock(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	found, _ := frozen.locks.Load("a")
	lock := found.(*heldLock)
	lock.until.Store(time.Now().Add(-time.Second).UnixMilli()) // it slept longer than its lease
	if err := frozen.Import(ctx, "a", deployment(t, "a", false)); err != nil {
		t.Fatalf("nobody had removed the lock: %v", err)
	}
	if err := frozen.store.Delete(ctx, lock.key); err != nil {
		t.Fatal(err)
	}
	if err := frozen.Import(ctx, "a", deployment(t, "a", true)); err == nil {
		t.Fatal("it wrote beside the next holder")
	}
	data, _ := frozen.read(ctx, "a")
	if !strings.Contains(string(data), `"protect":false`) {
		t.Fatalf("%s", data)
	}
}

func TestOnlyAStackThatExistsIsUnlocked(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	stacks, _ := open(t, root, "s")
	if locks, err := stacks.Unlock(ctx, "a"); locks != nil || err != nil {
		t.Fatalf("%v, %v", locks, err)
	}
	// The first update of a stack may have been killed before it had a state. The CLI's library describes each file in another.
	writeLock(t, root, lockOf(t, 7, nil))
	sidecar := filepath.Join(root, lockFolder("a"), "other.json.attrs")
	if err := os.WriteFile(sidecar, []byte(`{"user.content_type":"text/plain"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if locks, err := stacks.Unlock(ctx, "a"); len(locks) != 1 || !strings.Contains(locks[0], "ada@laptop (pid 7)") || err != nil {
		t.Fatalf("%v, %v", locks, err)
	}
	if _, err := os.Stat(filepath.Dir(sidecar)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("something is left: %v", err)
	}
	if err := stacks.Import(ctx, "a", deployment(t, "a", false)); err != nil {
		t.Fatal(err)
	}
	if locks, err := stacks.Unlock(ctx, "a"); locks == nil || len(locks) != 0 || err != nil {
		t.Fatalf("%v, %v", locks, err)
	}
}
