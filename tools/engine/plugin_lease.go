package main

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// lease is one update's use of a warm plugin. Its errors have no secrets of the configuration or of the resource.
type lease struct {
	pool     *plugins
	of       pluginProgram
	mutex    sync.Mutex
	warm     *warmPlugin
	released sync.Once
}

func (p *plugins) lease(of pluginProgram) (*lease, error) {
	warm, err := p.take(of)
	if err != nil {
		return nil, err
	}
	return &lease{pool: p, of: of, warm: warm}, nil
}

func (l *lease) used() *warmPlugin {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.warm
}

func (l *lease) use(warm *warmPlugin) {
	l.mutex.Lock()
	former := l.warm
	l.warm = warm
	l.mutex.Unlock()
	l.pool.release(former)
}

func (l *lease) close() { l.released.Do(func() { l.pool.end(l.used()) }) }

// call makes one call of the update's.
func (l *lease) call(ctx context.Context, method string, request, reply proto.Message) error {
	switch path.Base(method) {
	case "Handshake", "Attach":
		return status.Error(codes.Unimplemented, method) // it was done when the process was started
	case "Cancel":
		return l.pool.cancel(ctx, l.used())
	case "Configure":
		return l.configure(ctx, request.(*pulumirpc.ConfigureRequest), reply.(*pulumirpc.ConfigureResponse))
	case "Parameterize":
		if err := l.useAlone(); err != nil {
			return err
		}
	}
	return l.pool.call(ctx, l.used(), method, request, reply)
}

// call does not wait for a plugin when the update is to end at once; that plugin serves no other update.
func (p *plugins) call(ctx context.Context, warm *warmPlugin, method string, request, reply proto.Message) error {
	held := propertiesIn(request)
	warm.secrets.hold(held)
	// What it prints meanwhile is read a little later.
	defer time.AfterFunc(secretsHeld, func() { warm.secrets.drop(held) })
	err := warm.call(ctx, method, request, reply)
	if ctx.Err() != nil {
		p.drain(warm)
		return status.FromContextError(ctx.Err()).Err()
	}
	if failures, isCheck := reply.(interface {
		GetFailures() []*pulumirpc.CheckFailure
	}); isCheck {
		for _, failure := range failures.GetFailures() {
			failure.Reason = warm.secrets.hide(failure.Reason)
		}
	}
	if why := p.killedAs(warm); err != nil && why != "" {
		return status.Error(codes.ResourceExhausted, why)
	}
	if told := status.Convert(err); told.Code() == codes.Unavailable {
		err = status.Errorf(codes.Unavailable, "the plugin %s has ended while it was at work: %s", warm.of.Name, told.Message())
	}
	return warm.secrets.hideIn(err)
}

// configure changes to the process of the configuration, or configures one that has none.
func (l *lease) configure(
	ctx context.Context, request *pulumirpc.ConfigureRequest, reply *pulumirpc.ConfigureResponse,
) error {
	p, warm := l.pool, l.used()
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(request.GetArgs())
	if err != nil {
		return err
	}
	wanted := p.digest(bytes)
	// Others with this configuration wait until it has been accepted; those with another one do not.
	defer p.turns.wait(warm.program + wanted)()
	if answer := p.configuredAs(warm, wanted); answer != nil {
		proto.Merge(reply, answer)
		return nil
	}
	if other := p.alive(warm.program, func(configuration string) bool { return configuration == wanted }); other != nil {
		l.use(other)
		proto.Merge(reply, p.configuredAs(other, wanted))
		return nil
	}
	if !p.claim(warm, wanted) {
		if warm, err = p.add(warm.program, l.of, wanted); err != nil {
			return err
		}
		l.use(warm)
	}
	warm.secrets.hold(propertiesIn(request)) // for as long as it lives
	err = p.call(ctx, warm, pulumirpc.ResourceProvider_Configure_FullMethodName, request, reply)
	if err != nil {
		p.drain(warm)
		return err
	}
	p.setConfigured(warm, proto.CloneOf(reply))
	return nil
}

// useAlone takes a process of its own: to parameterize one makes another provider of it, which only this update wants.
func (l *lease) useAlone() error {
	warm, err := l.pool.add(l.used().program, l.of, "")
	if err != nil {
		return err
	}
	l.pool.drain(warm)
	l.use(warm)
	return nil
}

var errNoPlugin = errors.New("the first call must name a plugin")
