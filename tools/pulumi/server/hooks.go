package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	cmdBackend "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/backend"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/util/cancel"
	pkgWorkspace "github.com/pulumi/pulumi/pkg/v3/workspace"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// request is a command that runs. Its context carries it to what the CLI would take from the process: signals, the
// environment, the backend.
type request struct {
	run   run
	mutex sync.Mutex
	// How often it was cancelled, and where that is to be told.
	cancelled, terminated bool
	source                *cancel.Source
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

func (r *request) cancel(terminate bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.cancelled = true
	r.terminated = r.terminated || terminate
	r.deliver()
}

func (r *request) deliver() {
	if r.source == nil {
		return
	}
	if r.terminated {
		r.source.Terminate()
	} else if r.cancelled {
		r.source.Cancel()
	}
}

// scopes gives each update a cancellation of its own, in place of the process's signals.
type scopes struct{ checkpoints *checkpointSetting }

type scope struct {
	context *cancel.Context
	request *request
}

func (s scopes) NewScope(ctx context.Context, _ chan<- engine.Event, isPreview bool) backend.CancellationScope {
	r := requestOf(ctx)
	context, source := cancel.NewContext(ctx)
	r.mutex.Lock()
	r.source = source
	r.deliver()
	r.mutex.Unlock()
	if !isPreview {
		s.checkpoints.offer(r.run.SavesOnce)
	}
	return scope{context, r}
}

func (s scope) Context() *cancel.Context { return s.context }

func (s scope) Close() {
	s.request.mutex.Lock()
	defer s.request.mutex.Unlock()
	s.request.source = nil
}

// checkpointSetting answers PULUMI_SKIP_CHECKPOINTS for each update by itself. The backend reads it once, in the goroutine
// that has just made the update's cancellation scope (`apply` in backend/diy/backend.go), so an update offers its value
// there, and the next one has to wait until it was read.
type checkpointSetting struct {
	env.Store
	offering sync.Mutex
	value    string
}

const skipCheckpoints = env.Prefix + "SKIP_CHECKPOINTS"

func (c *checkpointSetting) offer(skip bool) {
	c.offering.Lock()
	c.value = fmt.Sprint(skip)
}

func (c *checkpointSetting) Raw(key string) (string, bool) {
	if key != skipCheckpoints {
		return c.Store.Raw(key)
	}
	value := c.value
	c.offering.Unlock()
	return value, true
}

// backends opens the backend that a request names, and each one that keeps connections only once.
type backends struct {
	cmdBackend.LoginManager
	mutex sync.Mutex
	open  map[string]backend.Backend
}

func newBackends(manager cmdBackend.LoginManager) *backends {
	return &backends{LoginManager: manager, open: map[string]backend.Backend{}}
}

func (b *backends) Current(
	ctx context.Context, ws pkgWorkspace.Context, sink diag.Sink, url string, project *workspace.Project, setCurrent bool,
) (backend.Backend, error) {
	return b.of(ctx, url, func(url string) (backend.Backend, error) {
		return b.LoginManager.Current(ctx, ws, sink, url, project, setCurrent)
	})
}

func (b *backends) Login(
	ctx context.Context, ws pkgWorkspace.Context, sink diag.Sink, url string, project *workspace.Project,
	setCurrent bool, insecure bool, color colors.Colorization,
) (backend.Backend, error) {
	return b.of(ctx, url, func(url string) (backend.Backend, error) {
		return b.LoginManager.Login(ctx, ws, sink, url, project, setCurrent, insecure, color)
	})
}

func (b *backends) of(
	ctx context.Context, url string, open func(url string) (backend.Backend, error),
) (backend.Backend, error) {
	if r := requestOf(ctx); r != nil && r.run.BackendURL != "" {
		url = r.run.BackendURL
	}
	if strings.HasPrefix(url, "file://") {
		return open(url)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if known := b.open[url]; known != nil {
		return known, nil
	}
	opened, err := open(url)
	if err == nil {
		b.open[url] = opened
	}
	return opened, err
}

// eventPipe makes a path for `--event-log` that gives each event to onEvent. Wait returns when all were given.
func eventPipe(onEvent func([]byte)) (path string, wait func(), err error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewReader(reader)
		for {
			line, err := lines.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 {
				onEvent(line)
			}
			if err != nil {
				return
			}
		}
	}()
	wait = func() {
		_ = writer.Close()
		<-read
		_ = reader.Close()
	}
	return fmt.Sprintf("/proc/self/fd/%d", writer.Fd()), wait, nil
}
