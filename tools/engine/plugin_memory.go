package main

import (
	"cmp"
	"fmt"
	"os"
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
func (p *plugins) watch() {
	for range time.Tick(measureEvery) {
		p.bound()
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
	total, resident := int64(0), map[*pluginProcess]int64{}
	for _, process := range p.all {
		resident[process] = process.resident()
		total += resident[process]
	}
	for _, process := range slices.Clone(p.all) {
		if float64(resident[process]) > farOver*float64(p.memory) {
			p.warn("killing a plugin: it has far more memory than plugins may have", process, resident[process])
			process.killed = fmt.Sprintf(
				"the plugin %s was killed, as it had %d MiB of the %d MiB that plugins may have: raise the memory limit "+
					"(`resources` of the installation)", process.of.Name, resident[process]>>20, p.memory>>20)
			process.kill()
			p.remove(process)
			total -= resident[process]
		}
	}
	for _, process := range p.unused() {
		if total > p.memory {
			p.remove(process)
			total -= resident[process]
		}
	}
	inUse := slices.DeleteFunc(slices.Clone(p.all), func(process *pluginProcess) bool { return process.draining })
	if total <= p.memory || len(inUse) == 0 {
		return
	}
	largest := slices.MaxFunc(inUse, func(a, b *pluginProcess) int { return cmp.Compare(resident[a], resident[b]) })
	largest.draining = true
	p.warn("replacing a plugin: plugins have more memory than they may have", largest, resident[largest])
}

func (p *plugins) warn(message string, process *pluginProcess, resident int64) {
	facts := process.of.facts()
	facts["pid"], facts["memoryBytes"], facts["boundBytes"] = process.pid(), resident, p.memory
	p.say(message, facts)
}

// residentWithChildren is the memory of a process and of all that it has started.
func residentWithChildren(pid int) int64 {
	total := residentOf(strconv.Itoa(pid))
	for _, child := range childrenOf(strconv.Itoa(pid)) {
		total += residentWithChildren(child)
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
