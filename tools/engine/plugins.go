package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	start func(pluginProgram, *secretWords) (startedProcess, error)
	// say tells the operator's log.
	say  func(message string, facts map[string]any)
	idle time.Duration
	kept int
	// What all processes may have in memory; 0 without a bound.
	memory int64

	// For digests of configurations, which may have secrets.
	salt  []byte
	mutex sync.Mutex
	all   []*pluginProcess
	// Serializes what starts processes, so that updates that begin at once share one.
	turns turns
}

// startedProcess is a plugin that runs.
type startedProcess interface {
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

// pluginProcess is a plugin that runs, and what updates use it for.
type pluginProcess struct {
	startedProcess
	secrets *secretWords
	of      pluginProgram
	// The digests of what it was started as and of its configuration, and its answer to that, when it has one.
	programDigest, configDigest string
	configured                  *pulumirpc.ConfigureResponse
	started                     time.Time
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

func newPlugins(start func(pluginProgram, *secretWords) (startedProcess, error)) *plugins {
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // never fails
	return &plugins{
		start: start, say: func(string, map[string]any) {}, idle: pluginIdle, kept: pluginsKept, salt: salt, turns: turns{named: map[string]*turn{}},
	}
}

func (p *plugins) digest(data []byte) string {
	mac := hmac.New(sha256.New, p.salt)
	_, _ = mac.Write(data) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// take finds a process of any configuration, or starts one: an update asks about a configuration before it gives one.
func (p *plugins) take(of pluginProgram) (*pluginProcess, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	programDigest := p.digest(text)
	defer p.turns.wait(programDigest)()
	if process := p.alive(programDigest, ""); process != nil {
		return process, nil
	}
	return p.add(programDigest, of, "")
}

// alive finds a process with this configuration, or any, that answers, and ends those that do not.
func (p *plugins) alive(programDigest, configDigest string) *pluginProcess {
	for {
		found := p.find(programDigest, configDigest)
		if found == nil || found.answers() {
			return found
		}
		p.drain(found)
		p.release(found)
	}
}

func (p *plugins) add(programDigest string, of pluginProgram, configDigest string) (*pluginProcess, error) {
	secrets := newSecretWords()
	started, err := p.start(of, secrets)
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	process := &pluginProcess{
		startedProcess: started, secrets: secrets, of: of, programDigest: programDigest, configDigest: configDigest,
		started: time.Now(), users: 1,
	}
	p.all = append(p.all, process)
	return process, nil
}

func (p *plugins) find(programDigest, configDigest string) *pluginProcess {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, process := range p.all {
		fits := configDigest == "" || process.configDigest == configDigest
		if process.programDigest == programDigest && fits && !process.draining {
			process.users++
			if process.ending != nil {
				process.ending.Stop()
			}
			return process
		}
	}
	return nil
}

// claim gives a process its configuration, unless it has one or gets no more updates.
func (p *plugins) claim(process *pluginProcess, configDigest string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if process.configDigest != "" || process.draining {
		return false
	}
	process.configDigest = configDigest
	return true
}

// configuredAs is what the process answered to its configuration, if that is the one.
func (p *plugins) configuredAs(process *pluginProcess, configDigest string) *pulumirpc.ConfigureResponse {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if process.configDigest != configDigest {
		return nil
	}
	return process.configured
}

func (process *pluginProcess) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), pluginAnswers)
	defer cancel()
	return process.call(ctx, pulumirpc.ResourceProvider_GetPluginInfo_FullMethodName, &emptypb.Empty{}, &pulumirpc.PluginInfo{}) == nil
}

func (p *plugins) drain(process *pluginProcess) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	process.draining = true
}

// countPrinted is told of what the process with these secrets prints.
func (p *plugins) countPrinted(secrets *secretWords, bytes int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, process := range slices.Clone(p.all) {
		if process.secrets != secrets {
			continue
		}
		if process.printed += bytes; process.printed > pluginPrints {
			process.draining = true
			if process.users == 0 {
				p.remove(process)
			}
		}
	}
}

// cancel tells a process to abort what it does if only one update uses it; one that others share is replaced.
func (p *plugins) cancel(ctx context.Context, process *pluginProcess) error {
	p.mutex.Lock()
	process.draining = true
	alone := process.users == 1
	p.mutex.Unlock()
	if alone {
		return process.call(ctx, pulumirpc.ResourceProvider_Cancel_FullMethodName, &emptypb.Empty{}, &emptypb.Empty{})
	}
	return nil
}

// end releases a process with the end of an update, which was its last use.
func (p *plugins) end(process *pluginProcess) {
	p.mutex.Lock()
	process.usedAt = time.Now()
	process.uses++
	p.mutex.Unlock()
	p.release(process)
}

// release ends a process without users when it drains, has been idle, or is the oldest of too many.
func (p *plugins) release(process *pluginProcess) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if process.users--; process.users > 0 {
		return
	}
	// No update finds one that was never configured.
	if process.draining || process.configDigest == "" {
		p.remove(process)
		return
	}
	process.ending = time.AfterFunc(p.idle-time.Since(process.usedAt), func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if process.users == 0 && time.Since(process.usedAt) >= p.idle {
			p.remove(process)
		}
	})
	if unused := p.unused(); len(unused) > p.kept {
		p.remove(unused[0])
	}
}

// unused are the processes without an update, the one that was used the longest ago first. It needs the lock.
func (p *plugins) unused() []*pluginProcess {
	unused := slices.DeleteFunc(slices.Clone(p.all), func(process *pluginProcess) bool { return process.users > 0 })
	slices.SortFunc(unused, func(a, b *pluginProcess) int { return a.usedAt.Compare(b.usedAt) })
	return unused
}

// remove needs the lock.
func (p *plugins) remove(process *pluginProcess) {
	before := len(p.all)
	p.all = slices.DeleteFunc(p.all, func(other *pluginProcess) bool { return other == process })
	if len(p.all) == before {
		return
	}
	if process.ending != nil {
		process.ending.Stop()
	}
	go process.end()
}
