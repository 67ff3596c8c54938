package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

const (
	// A plugin's process without an update ends after so long.
	pluginIdle = time.Minute
	// So many processes are kept without an update; those that updates use are not limited.
	pluginsKept = 8
	// How long a process that was idle has to say that it is alive.
	pluginAnswers = 2 * time.Second
)

// plugins are the processes of resource plugins, which updates share by name, version and configuration.
type plugins struct {
	// start runs a process; it is told what to do with what the process prints.
	start func(workspace.PluginDescriptor, env.Env, *secretWords) (process, error)
	idle  time.Duration
	kept  int

	// For digests of configurations, which may have secrets.
	salt  []byte
	mutex sync.Mutex
	all   []*warmPlugin
	// By program, serializes what starts processes, so that updates that begin at once share one.
	starting map[string]*sync.Mutex
}

// process is a plugin that runs.
type process interface {
	plugin.Provider
	// end signals cancellation, and kills the process if it does not end.
	end()
}

// warmPlugin is a process, and how many updates use it.
type warmPlugin struct {
	process
	secrets *secretWords
	// What it was started as; and its configuration's digest when it has one.
	program, configuration string
	users                  int
	// Nothing new is given to it, and it ends with its last user.
	draining bool
	// When an update with its configuration ended.
	usedAt time.Time
	ending *time.Timer
}

func newPlugins(start func(workspace.PluginDescriptor, env.Env, *secretWords) (process, error)) *plugins {
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // never fails
	return &plugins{start: start, idle: pluginIdle, kept: pluginsKept, salt: salt, starting: map[string]*sync.Mutex{}}
}

func (p *plugins) digest(parts ...[]byte) string {
	mac := hmac.New(sha256.New, p.salt)
	for _, part := range parts {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

func (p *plugins) programOf(descriptor workspace.PluginDescriptor, e env.Env) string {
	version := ""
	if descriptor.Version != nil {
		version = descriptor.Version.String()
	}
	variables := []string{}
	for name, value := range e.GetStore().Values() {
		variables = append(variables, name+"="+value)
	}
	slices.Sort(variables)
	parts := [][]byte{[]byte(descriptor.Name), []byte(version), []byte(descriptor.PluginDownloadURL)}
	for _, variable := range variables {
		parts = append(parts, []byte(variable))
	}
	return p.digest(parts...)
}

// take finds a process of any configuration, or starts one: an update asks about a configuration before it gives one.
func (p *plugins) take(descriptor workspace.PluginDescriptor, e env.Env) (*warmPlugin, error) {
	program := p.programOf(descriptor, e)
	defer p.startOf(program)()
	if warm := p.alive(program, func(string) bool { return true }); warm != nil {
		return warm, nil
	}
	return p.add(program, descriptor, e)
}

// startOf waits for its turn to start a process of a program, and returns what ends it.
func (p *plugins) startOf(program string) func() {
	p.mutex.Lock()
	turn := p.starting[program]
	if turn == nil {
		turn = &sync.Mutex{}
		p.starting[program] = turn
	}
	p.mutex.Unlock()
	turn.Lock()
	return turn.Unlock
}

// alive finds a process that answers, and ends those that do not.
func (p *plugins) alive(program string, fits func(configuration string) bool) *warmPlugin {
	for {
		found := p.find(program, fits)
		if found == nil || found.answers() {
			return found
		}
		p.drain(found)
		p.release(found)
	}
}

func (p *plugins) add(program string, descriptor workspace.PluginDescriptor, e env.Env) (*warmPlugin, error) {
	secrets := &secretWords{}
	started, err := p.start(descriptor, e, secrets)
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	warm := &warmPlugin{process: started, secrets: secrets, program: program, users: 1}
	p.all = append(p.all, warm)
	return warm, nil
}

func (p *plugins) find(program string, fits func(configuration string) bool) *warmPlugin {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, warm := range p.all {
		if warm.program == program && !warm.draining && fits(warm.configuration) {
			warm.users++
			if warm.ending != nil {
				warm.ending.Stop()
			}
			return warm
		}
	}
	return nil
}

func (w *warmPlugin) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), pluginAnswers)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := w.GetPluginInfo(ctx)
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-ctx.Done():
		return false
	}
}

func (p *plugins) drain(warm *warmPlugin) {
	p.mutex.Lock()
	warm.draining = true
	p.mutex.Unlock()
}

func (p *plugins) isDraining(warm *warmPlugin) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return warm.draining
}

func (p *plugins) configurationOf(warm *warmPlugin) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return warm.configuration
}

// cancel tells a process to abort what it does if only one update uses it; one that others share is replaced.
func (p *plugins) cancel(ctx context.Context, warm *warmPlugin) error {
	p.mutex.Lock()
	warm.draining = true
	alone := warm.users == 1
	p.mutex.Unlock()
	if alone {
		return warm.SignalCancellation(ctx)
	}
	return nil
}

// end is an update's.
func (p *plugins) end(warm *warmPlugin) {
	p.mutex.Lock()
	warm.usedAt = time.Now()
	p.mutex.Unlock()
	p.release(warm)
}

// release ends a process without users when it drains, has been idle, or is the oldest of too many.
func (p *plugins) release(warm *warmPlugin) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if warm.users--; warm.users > 0 {
		return
	}
	// No update finds one that was never configured.
	if warm.draining || warm.configuration == "" {
		p.remove(warm)
		return
	}
	warm.ending = time.AfterFunc(p.idle-time.Since(warm.usedAt), func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if warm.users == 0 && time.Since(warm.usedAt) >= p.idle {
			p.remove(warm)
		}
	})
	unused := []*warmPlugin{}
	for _, other := range p.all {
		if other.users == 0 {
			unused = append(unused, other)
		}
	}
	if len(unused) > p.kept {
		p.remove(slices.MinFunc(unused, func(a, b *warmPlugin) int { return a.usedAt.Compare(b.usedAt) }))
	}
}

// remove needs the lock.
func (p *plugins) remove(warm *warmPlugin) {
	before := len(p.all)
	p.all = slices.DeleteFunc(p.all, func(other *warmPlugin) bool { return other == warm })
	if len(p.all) == before {
		return
	}
	if warm.ending != nil {
		warm.ending.Stop()
	}
	go warm.end()
}
