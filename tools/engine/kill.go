package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killPlugins kills all processes that this one has started, each with its own group, at once: nothing is told to end.
// Where the system does not list them, plugins end when they find that their host has.
func killPlugins() {
	for _, pid := range childrenOf("self") {
		killGroup(pid)
	}
}

func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// childrenOf are a process's; none where the system does not list them.
func childrenOf(pid string) []int {
	lists, _ := filepath.Glob(filepath.Join("/proc", pid, "task/*/children"))
	children := []int{}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(child); err == nil {
				children = append(children, pid)
			}
		}
	}
	return children
}
