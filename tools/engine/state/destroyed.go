package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A stack that is not there may be lost, or destroyed. What tells is a file beside the stacks, from the end of a destroy until
// its object is gone: without it, a crash between the two would look like a lost state.
const destroyedFolder = ".pulumi/kindstack-destroyed"

// Of a process that ended right after its object did, the file stays. No object takes so long to be gone.
const destroyedLifetime = 30 * 24 * time.Hour

type destroyed struct {
	// Object is the UID of the object that the stack was of: a successor of its name is another one.
	Object string    `json:"object"`
	At     time.Time `json:"at"`
}

func destroyedKey(name string) string { return destroyedFolder + "/" + name + ".json" }

// Destroyed removes a stack whose resources are gone, and tells of it for its object, if it is of one. It is for the holder of the
// stack's lock.
func (s *Stacks) Destroyed(ctx context.Context, name, object string) error {
	s.holder.exitIfOver()
	if err := s.checkLock(ctx, name); err != nil {
		return err
	}
	if object != "" {
		data, _ := json.Marshal(destroyed{Object: object, At: time.Now().UTC()})
		if err := s.store.Write(ctx, destroyedKey(name), data); err != nil {
			return fmt.Errorf("cannot write that the stack %s is destroyed: %w", name, err)
		}
	}
	return s.Remove(ctx, name)
}

// IsDestroyed returns whether a stack was destroyed for this object.
func (s *Stacks) IsDestroyed(ctx context.Context, name, object string) (bool, error) {
	told, err := s.destroyed(ctx, destroyedKey(name))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read whether the stack %s was destroyed: %w", name, err)
	}
	return told.Object == object, nil
}

// destroyed returns nothing of a file that a full disk has left torn.
func (s *Stacks) destroyed(ctx context.Context, key string) (told destroyed, err error) {
	data, err := s.store.Read(ctx, key)
	if err == nil && json.Unmarshal(data, &told) != nil {
		return destroyed{}, nil
	}
	return told, err
}

// ForgetDestroyed removes what tells that these stacks were destroyed, as their objects are gone, and with its first call what
// others have left behind.
func (s *Stacks) ForgetDestroyed(ctx context.Context, names []string) error {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = destroyedKey(name)
	}
	err := s.store.Delete(ctx, keys...)
	s.forgetOld.Do(func() { err = errors.Join(err, s.forgetOldDestroyed(ctx)) })
	if err != nil {
		return fmt.Errorf("cannot remove what tells of destroyed stacks: %w", err)
	}
	return nil
}

func (s *Stacks) forgetOldDestroyed(ctx context.Context) error {
	files, err := s.store.List(ctx, destroyedFolder)
	var keys []string
	for _, file := range files {
		key := destroyedFolder + "/" + file.Name
		told, err := s.destroyed(ctx, key)
		if err == nil && time.Since(told.At) > destroyedLifetime {
			keys = append(keys, key)
		}
	}
	if err != nil || len(keys) == 0 {
		return err
	}
	return s.store.Delete(ctx, keys...)
}
