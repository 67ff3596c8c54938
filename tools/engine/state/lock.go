package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Holder is who takes locks: this process, on behalf of an operator's session.
type Holder struct {
	// The operator's process, which asks for one operation on a stack at a time: its earlier locks of the stack are over.
	session string
	content lockContent
	// Until when this process may run, in Unix milliseconds; 0 for ever.
	until atomic.Int64
	// Told of locks that are removed.
	warn func(message string, facts map[string]any)
}

// lockContent is what a lock says. The CLI reads and writes the first four.
type lockContent struct {
	Pid       int       `json:"pid"`
	Username  string    `json:"username"`
	Hostname  string    `json:"hostname"`
	Timestamp time.Time `json:"timestamp"`
	Kindstack *lease    `json:"kindstack,omitempty"`
}

// lease tells whether a lock of Kindstack's still counts.
type lease struct {
	Session string `json:"session"`
	// Process is the identity of the process that works under the lock.
	Process string `json:"process,omitempty"`
	// Until is when the lock ends, unless its process renews it.
	Until time.Time `json:"until"`
}

const (
	lockLease   = 15 * time.Second
	renewBefore = 10 * time.Second
)

// NewHolder makes the holder of this process's locks.
func NewHolder(session string, warn func(message string, facts map[string]any)) *Holder {
	h := &Holder{session: session, warn: warn}
	h.content = lockContent{Pid: os.Getpid(), Username: username()}
	h.content.Hostname, _ = os.Hostname()
	return h
}

// username is as the CLI writes it; in a container the uid may have no name but the one in the environment.
func username() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// Allow tells until when this process may run, and with it its locks.
func (h *Holder) Allow(until time.Time) { h.until.Store(until.UnixMilli()) }

// ExitOver is the exit code of a process whose time is over.
const ExitOver = 3

// exitIfOver is asked before each write: a process that was frozen continues in the middle of its work.
func (h *Holder) exitIfOver() {
	if until := h.until.Load(); until != 0 && time.Now().UnixMilli() > until {
		os.Exit(ExitOver)
	}
}

// contentNow is what a lock says when it is written now, and until when it counts.
func (h *Holder) contentNow() (data []byte, until time.Time) {
	content := h.content
	content.Timestamp = time.Now()
	until = content.Timestamp.Add(lockLease)
	if allowed := h.until.Load(); allowed != 0 && allowed < until.UnixMilli() {
		until = time.UnixMilli(allowed)
	}
	content.Kindstack = &lease{Session: h.session, Process: identity(content.Pid), Until: until}
	data, _ = json.Marshal(content)
	return data, until
}

// heldLock is one that this process has taken.
type heldLock struct {
	key string
	// Until when nobody else may remove it, in Unix milliseconds: by the clock, which goes on while a process is frozen.
	until atomic.Int64
	// Whether it was removed in spite of that, or after it.
	removed atomic.Bool
}

// isRemoved looks whether a lock is still there.
func (l *heldLock) isRemoved(ctx context.Context, store Store) (bool, error) {
	if l.removed.Load() {
		return true, nil
	}
	_, err := store.Read(ctx, l.key)
	if errors.Is(err, ErrNotFound) {
		l.removed.Store(true)
		return true, nil
	}
	return false, err
}

// checkLock refuses a write to a stack whose lock was removed: another process may have it, as after this one was frozen.
func (s *Stacks) checkLock(ctx context.Context, name string) error {
	found, isHeld := s.locks.Load(name)
	if !isHeld {
		return nil
	}
	lock := found.(*heldLock)
	if !lock.removed.Load() && time.Now().UnixMilli() <= lock.until.Load() {
		return nil
	}
	isRemoved, err := lock.isRemoved(ctx, s.store)
	if err != nil {
		return fmt.Errorf("cannot read the lock of the stack %s: %w", name, err)
	}
	if isRemoved {
		return fmt.Errorf("the lock of the stack %s was removed while an operation held it: its state is not written", name)
	}
	return nil
}

// LockedError names who holds the lock of a stack.
type LockedError struct {
	Stack  string
	Holder string
	// Advice is what ends the lock.
	Advice string
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("the stack %s is locked: %s. %s", e.Stack, e.Holder, e.Advice)
}

func lockFolder(name string) string { return ".pulumi/locks/" + string(qualifiedName(name)) }

// Lock takes a stack's lock, and keeps it until unlock is called. A lock of Kindstack's own that has ended is removed;
// anybody else's never is.
//
// It returns a LockedError when somebody else has it.
func (s *Stacks) Lock(ctx context.Context, name string) (unlock func(), err error) {
	file := uuid.NewString() + ".json"
	lock := &heldLock{key: lockFolder(name) + "/" + file}
	if err := s.extend(ctx, lock); err != nil {
		return nil, fmt.Errorf("cannot lock the stack %s: %w", name, err)
	}
	ended := make(chan struct{})
	var renewal sync.WaitGroup
	release := func() {
		close(ended)
		renewal.Wait() // one that is on its way would bring the lock back
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		if err := s.store.Delete(ctx, lock.key); err != nil {
			s.holder.warn("failed to remove a lock", map[string]any{"stack": name, "reason": err.Error()})
		}
	}
	if err := s.refuseOthers(ctx, name, file); err != nil {
		release()
		return nil, err
	}
	s.locks.Store(name, lock)
	renewal.Go(func() { s.renew(lock, ended) })
	return func() {
		s.locks.Delete(name)
		release()
	}, nil
}

func (s *Stacks) extend(ctx context.Context, lock *heldLock) error {
	data, until := s.holder.contentNow()
	err := s.store.Write(ctx, lock.key, data)
	if err == nil {
		lock.until.Store(max(lock.until.Load(), until.UnixMilli()))
	}
	return err
}

func (s *Stacks) renew(lock *heldLock, ended <-chan struct{}) {
	var writes sync.WaitGroup
	defer writes.Wait()
	due := time.Tick(lockLease - renewBefore)
	for {
		select {
		case <-ended:
			return
		case <-due:
			// Beside one that still waits for an answer, as of a connection that is lost.
			writes.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), lockLease-renewBefore)
				defer cancel()
				// One that was removed is not brought back. If neither can be done, the next renewal may succeed.
				if isRemoved, err := lock.isRemoved(ctx, s.store); !isRemoved && err == nil {
					_ = s.extend(ctx, lock)
				}
			})
		}
	}
}

func (s *Stacks) refuseOthers(ctx context.Context, name, own string) error {
	files, err := s.store.List(ctx, lockFolder(name))
	if err != nil {
		return fmt.Errorf("cannot lock the stack %s: %w", name, err)
	}
	for _, file := range files {
		if file.Name == own {
			continue
		}
		key := lockFolder(name) + "/" + file.Name
		data, err := s.store.Read(ctx, key)
		if errors.Is(err, ErrNotFound) {
			continue // it was released at this moment
		} else if err != nil {
			return fmt.Errorf("cannot lock the stack %s: %w", name, err)
		}
		var lock lockContent
		facts := map[string]any{"stack": name}
		switch isWhole := json.Unmarshal(data, &lock) == nil; {
		case !isWhole:
			// Of a process that was killed, or had no room, while it wrote it. The CLI would fail on it for ever.
			s.holder.warn("removed an incomplete lock", facts)
		case s.holder.isOver(&lock):
			facts["lock"] = lock.describe()
			s.holder.warn("removed the lock of a dead process", facts)
		default:
			return &LockedError{Stack: name, Holder: lock.describe(), Advice: lock.advice(name)}
		}
		if err := s.store.Delete(ctx, key); err != nil {
			return fmt.Errorf("cannot lock the stack %s: %w", name, err)
		}
	}
	return nil
}

// isOver tells whether a lock has ended.
func (h *Holder) isOver(lock *lockContent) bool {
	held := lock.Kindstack
	if held == nil {
		return false
	}
	if held.Session == h.session {
		return true // the operator does not ask for a second operation on a stack that is at work
	}
	if alive, known := isAlive(lock.Pid, held.Process); known {
		return !alive
	}
	return time.Now().After(held.Until)
}

func (l *lockContent) describe() string {
	return fmt.Sprintf("created by %s@%s (pid %d) at %s", l.Username, l.Hostname, l.Pid, l.Timestamp.Format(time.RFC3339))
}

func (l *lockContent) advice(name string) string {
	if l.Kindstack != nil {
		return fmt.Sprintf("Wait for that Kindstack, or end it: the lock ends %.0f seconds after its process", lockLease.Seconds())
	}
	return "Wait for that process, or end it. Only if it is gone, run: kindstack state unlock " + name
}

// Unlock removes all locks of a stack, whoever holds them, and returns them; nil for a stack that does not exist.
func (s *Stacks) Unlock(ctx context.Context, name string) ([]string, error) {
	files, err := s.store.List(ctx, lockFolder(name))
	if err == nil && len(files) == 0 {
		if _, err = s.read(ctx, name); errors.Is(err, ErrNotFound) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the locks of the stack %s: %w", name, err)
	}
	removed := []string{}
	for _, file := range files {
		key := lockFolder(name) + "/" + file.Name
		data, _ := s.store.Read(ctx, key)
		var lock lockContent
		description := strings.TrimSpace(string(data))
		if json.Unmarshal(data, &lock) == nil {
			description = lock.describe()
		}
		if err := s.store.Delete(ctx, key); err != nil {
			return removed, fmt.Errorf("cannot remove a lock of the stack %s: %w", name, err)
		}
		removed = append(removed, description)
	}
	return removed, nil
}
