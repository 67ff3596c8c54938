package state

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// identity tells a process from any other on this machine, before and after it: a process number is used again, and in a
// container that was restarted it may be its successor's. Empty where that cannot be told.
//
// @return `<boot>/<pid namespace>/<start in ticks since boot>`
func identity(pid int) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	start := startOf(pid)
	if start == "" {
		return ""
	}
	return strings.Join([]string{strings.TrimSpace(string(boot)), namespace, start}, "/")
}

// startOf returns when a process started; empty when there is no such process, only a thread of that number, or it has
// ended and waits for its parent to notice.
func startOf(pid int) string {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may have any characters.
	fields := strings.Fields(string(status[strings.LastIndexByte(string(status), ')')+1:]))
	const stateField, startField = 0, 19
	if len(fields) <= startField || fields[stateField] == "Z" || fields[stateField] == "X" {
		return ""
	}
	return fields[startField]
}

// isAlive tells whether the process of an identity lives; known is false for one of another machine or container.
func isAlive(pid int, id string) (alive, known bool) {
	own := identity(os.Getpid())
	split := strings.LastIndexByte(own, '/')
	if split < 0 || len(id) <= split || id[:split] != own[:split] {
		return false, false
	}
	return startOf(pid) == id[split+1:], true
}
