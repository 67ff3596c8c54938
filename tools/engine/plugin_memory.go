package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// What plugins may have of the container's memory, or of the machine's.
	pluginsShare = 0.3
	// A process that alone has so many times what all may have is killed, whoever uses it.
	farOver = 1.5
	// How often processes are measured.
	measureEvery = 5 * time.Second
)

// watch keeps the memory of processes within its bound.
func (p *plugins) watch(ctx context.Context) {
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.bound()
		case <-ctx.Done():
			return
		}
	}
}

// bound ends processes without an update, the one that was used the longest ago first. When that is not enough, the largest
// gets no new updates, and is replaced: a plugin that leaks gives its memory back that way.
func (p *plugins) bound() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.memory == 0 {
		return
	}
	total, resident := int64(0), map[*warmPlugin]int64{}
	for _, warm := range p.all {
		resident[warm] = warm.resident()
		total += resident[warm]
	}
	for _, warm := range slices.Clone(p.all) {
		if float64(resident[warm]) > farOver*float64(p.memory) {
			p.warn("killing a plugin: it has far more memory than plugins may have", warm, resident[warm])
			warm.killed = fmt.Sprintf(
				"the plugin %s was killed, as it had %d MiB of the %d MiB that plugins may have: raise the memory limit "+
					"(`resources` of the installation)", warm.of.Name, resident[warm]>>20, p.memory>>20)
			warm.kill()
			p.remove(warm)
			total -= resident[warm]
		}
	}
	for _, warm := range p.unused() {
		if total > p.memory {
			p.remove(warm)
			total -= resident[warm]
		}
	}
	inUse := slices.DeleteFunc(slices.Clone(p.all), func(warm *warmPlugin) bool { return warm.draining })
	if total <= p.memory || len(inUse) == 0 {
		return
	}
	largest := slices.MaxFunc(inUse, func(a, b *warmPlugin) int { return cmp.Compare(resident[a], resident[b]) })
	largest.draining = true
	p.warn("replacing a plugin: plugins have more memory than they may have", largest, resident[largest])
}

func (p *plugins) warn(message string, warm *warmPlugin, resident int64) {
	facts := warm.of.facts()
	facts["pid"], facts["memoryBytes"], facts["boundBytes"] = warm.pid(), resident, p.memory
	p.say(message, facts)
}

// residentOf is the memory of a process and all its children; 0 where the system does not tell.
func residentOf(pid int) int64 {
	pages := int64(0)
	if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm")); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ = strconv.ParseInt(fields[1], 10, 64)
		}
	}
	total := pages * int64(os.Getpagesize())
	for _, child := range childrenOf(strconv.Itoa(pid)) {
		total += residentOf(child)
	}
	return total
}

// memoryLimit is the container's, or what the machine has; 0 where the system does not tell.
func memoryLimit() int64 {
	if limit := containerLimit(); limit > 0 {
		return limit
	}
	text, _ := os.ReadFile("/proc/meminfo")
	if fields := strings.Fields(string(text)); len(fields) > 1 && fields[0] == "MemTotal:" {
		kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
		return kilobytes << 10
	}
	return 0
}
