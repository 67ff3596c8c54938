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

func (h *Holder) contentNow() []byte {
	content := h.content
	content.Timestamp = time.Now()
	until := content.Timestamp.Add(lockLease)
	if allowed := h.until.Load(); allowed != 0 && allowed < until.UnixMilli() {
		until = time.UnixMilli(allowed)
	}
	content.Kindstack = &lease{Session: h.session, Process: identity(content.Pid), Until: until}
	data, _ := json.Marshal(content)
	return data
}

// LockedError names who holds the lock of a stack.
type LockedError struct {
	Stack  string
	Holder string
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("the stack %s is locked: %s", e.Stack, e.Holder)
}

func lockFolder(name string) string { return ".pulumi/locks/" + string(qualifiedName(name)) }

// Lock takes a stack's lock, and keeps it until unlock is called. A lock of Kindstack's own that has ended is removed;
// anybody else's never is.
//
// It returns a LockedError when somebody else has it.
func (s *Stacks) Lock(ctx context.Context, name string) (unlock func(), err error) {
	file := uuid.NewString() + ".json"
	key := lockFolder(name) + "/" + file
	if err := s.store.Write(ctx, key, s.holder.contentNow()); err != nil {
		return nil, fmt.Errorf("cannot lock the stack %s: %w", name, err)
	}
	ended := make(chan struct{})
	var renewal sync.WaitGroup
	release := func() {
		close(ended)
		renewal.Wait() // one that is on its way would bring the lock back
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		if err := s.store.Delete(ctx, key); err != nil {
			s.holder.warn("failed to remove a lock", map[string]any{"stack": name, "reason": err.Error()})
		}
	}
	if err := s.refuseOthers(ctx, name, file); err != nil {
		release()
		return nil, err
	}
	renewal.Go(func() { s.renew(key, ended) })
	return release, nil
}

func (s *Stacks) renew(key string, ended <-chan struct{}) {
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
				_ = s.store.Write(ctx, key, s.holder.contentNow()) // the next one may succeed
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
			return &LockedError{Stack: name, Holder: lock.describe()}
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

// Unlock removes all locks of a stack, whoever holds them, and returns them.
func (s *Stacks) Unlock(ctx context.Context, name string) ([]string, error) {
	files, err := s.store.List(ctx, lockFolder(name))
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
