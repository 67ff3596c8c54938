package main

import "sync"

// turns lets one at a time do something by name.
type turns struct {
	mutex sync.Mutex
	named map[string]*turn
}

type turn struct {
	sync.Mutex
	// Who waits for it or has it.
	wanted int
}

// wait returns what ends the turn.
func (t *turns) wait(name string) func() {
	t.mutex.Lock()
	mine := t.named[name]
	if mine == nil {
		mine = &turn{}
		t.named[name] = mine
	}
	mine.wanted++
	t.mutex.Unlock()
	mine.Lock()
	return func() {
		mine.Unlock()
		t.mutex.Lock()
		defer t.mutex.Unlock()
		if mine.wanted--; mine.wanted == 0 {
			delete(t.named, name)
		}
	}
}
