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

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

const (
	// A plugin's process without an update ends after so long.
	pluginIdle = time.Minute
	// So many processes are kept without an update; those that updates use are not limited.
	pluginsKept = 8
	// How long a process that was idle has to say that it is alive.
	pluginAnswers = 2 * time.Second
	// Pulumi's host keeps all that a process prints until it ends, so one that has printed so much is replaced.
	pluginPrints = 8 << 20
)

// plugins are the processes of resource plugins, which updates share by name, version and configuration.
type plugins struct {
	// start runs a process; it is told what to do with what the process prints.
	start func(pluginProgram, *secretWords) (process, error)
	// say tells the operator's log.
	say  func(message string, facts map[string]any)
	idle time.Duration
	kept int
	// What all processes may have in memory; 0 without a bound.
	memory int64

	// For digests of configurations, which may have secrets.
	salt  []byte
	mutex sync.Mutex
	all   []*warmPlugin
	// Serializes what starts processes, so that updates that begin at once share one.
	turns turns
}

// process is a plugin that runs.
type process interface {
	// call makes one call of Pulumi's provider protocol.
	call(ctx context.Context, method string, request, reply proto.Message) error
	pid() int
	// resident is the memory of the process and its children, in bytes.
	resident() int64
	// end signals cancellation, and kills the process if it does not end.
	end()
	// kill gives it no time to end.
	kill()
}

// warmPlugin is a process, and how many updates use it.
type warmPlugin struct {
	process
	secrets *secretWords
	of      pluginProgram
	// What it was started as; and its configuration's digest and answer when it has one.
	program, configuration string
	configured             *pulumirpc.ConfigureResponse
	started                time.Time
	// How many updates use it, and have used it.
	users, uses int
	// Nothing new is given to it, and it ends with its last user.
	draining bool
	// When an update with its configuration ended.
	usedAt time.Time
	ending *time.Timer
	// How much it has printed, in bytes.
	printed int
	// Why it was killed, for the updates that used it.
	killed string
}

func newPlugins(start func(pluginProgram, *secretWords) (process, error)) *plugins {
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // never fails
	return &plugins{
		start: start, say: func(string, map[string]any) {}, idle: pluginIdle, kept: pluginsKept, salt: salt, turns: newTurns(),
	}
}

func (p *plugins) digest(parts ...[]byte) string {
	mac := hmac.New(sha256.New, p.salt)
	for _, part := range parts {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// take finds a process of any configuration, or starts one: an update asks about a configuration before it gives one.
func (p *plugins) take(of pluginProgram) (*warmPlugin, error) {
	program := p.digest(of.parts()...)
	defer p.turns.wait(program)()
	if warm := p.alive(program, func(string) bool { return true }); warm != nil {
		return warm, nil
	}
	return p.add(program, of, "")
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

func (p *plugins) add(program string, of pluginProgram, configuration string) (*warmPlugin, error) {
	secrets := &secretWords{}
	started, err := p.start(of, secrets)
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	warm := &warmPlugin{
		process: started, secrets: secrets, of: of, program: program, configuration: configuration, started: time.Now(), users: 1,
	}
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

// claim gives a process its configuration, unless it has one or gets no more updates.
func (p *plugins) claim(warm *warmPlugin, configuration string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if warm.configuration != "" || warm.draining {
		return false
	}
	warm.configuration = configuration
	return true
}

// configuredAs is what the process answered to its configuration, if that is the one.
func (p *plugins) configuredAs(warm *warmPlugin, configuration string) *pulumirpc.ConfigureResponse {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if warm.configuration != configuration {
		return nil
	}
	return warm.configured
}

func (p *plugins) setConfigured(warm *warmPlugin, answer *pulumirpc.ConfigureResponse) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	warm.configured = answer
}

func (w *warmPlugin) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), pluginAnswers)
	defer cancel()
	return w.call(ctx, pulumirpc.ResourceProvider_GetPluginInfo_FullMethodName, &emptypb.Empty{}, &pulumirpc.PluginInfo{}) == nil
}

func (p *plugins) drain(warm *warmPlugin) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	warm.draining = true
}

// countPrinted is told of what the process with these secrets prints.
func (p *plugins) countPrinted(secrets *secretWords, bytes int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, warm := range slices.Clone(p.all) {
		if warm.secrets != secrets {
			continue
		}
		if warm.printed += bytes; warm.printed > pluginPrints {
			warm.draining = true
			if warm.users == 0 {
				p.remove(warm)
			}
		}
	}
}

// cancel tells a process to abort what it does if only one update uses it; one that others share is replaced.
func (p *plugins) cancel(ctx context.Context, warm *warmPlugin) error {
	p.mutex.Lock()
	warm.draining = true
	alone := warm.users == 1
	p.mutex.Unlock()
	if alone {
		return warm.call(ctx, pulumirpc.ResourceProvider_Cancel_FullMethodName, &emptypb.Empty{}, &emptypb.Empty{})
	}
	return nil
}

// end is an update's.
func (p *plugins) end(warm *warmPlugin) {
	p.mutex.Lock()
	warm.usedAt = time.Now()
	warm.uses++
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
	if unused := p.unused(); len(unused) > p.kept {
		p.remove(unused[0])
	}
}

// unused are the processes without an update, the one that was used the longest ago first. It needs the lock.
func (p *plugins) unused() []*warmPlugin {
	unused := slices.DeleteFunc(slices.Clone(p.all), func(warm *warmPlugin) bool { return warm.users > 0 })
	slices.SortFunc(unused, func(a, b *warmPlugin) int { return a.usedAt.Compare(b.usedAt) })
	return unused
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

// killedAs is empty for a process that was not killed.
func (p *plugins) killedAs(warm *warmPlugin) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return warm.killed
}

// areNone tells whether there is no process.
func (p *plugins) areNone() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.all) == 0
}
