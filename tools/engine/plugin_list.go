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
	for _, warm := range p.all {
		state := "idle"
		if warm.draining {
			state = "draining"
		} else if warm.users > 0 {
			state = "used"
		}
		listed = append(listed, listedPlugin{
			Name: warm.of.Name, Version: warm.of.Version, Pid: warm.pid(), StartedAt: warm.started, Updates: warm.uses + warm.users,
			InUse: warm.users, MemoryBytes: warm.resident(), State: state,
		})
	}
	return listed
}
