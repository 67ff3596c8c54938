package main

import "time"

// listedPlugin is what the operator shows of a process.
type listedPlugin struct {
	Name        string    `json:"name"`
	Version     string    `json:"version,omitempty"`
	Pid         int       `json:"pid"`
	StartedAt   time.Time `json:"startedAt"`
	Updates     int       `json:"updates"`
	InUse       int       `json:"inUse"`
	MemoryBytes int64     `json:"memoryBytes"`
	// State is `draining` for one that gets no new updates, else `used` or `idle`.
	State string `json:"state"`
}

func (p *plugins) list() []listedPlugin {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	listed := []listedPlugin{}
	for _, process := range p.all {
		state := "idle"
		if process.draining {
			state = "draining"
		} else if process.users > 0 {
			state = "used"
		}
		listed = append(listed, listedPlugin{
			Name: process.of.Name, Version: process.of.Version, Pid: process.pid(), StartedAt: process.started, Updates: process.uses + process.users,
			InUse: process.users, MemoryBytes: process.resident(), State: state,
		})
	}
	return listed
}
