package main

import (
	"context"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// pluginUse is one update's use of a plugin, in the host of plugins; `usedPlugin` is the engine's end of it. Its errors have no
// secrets of the configuration or of the resource.
type pluginUse struct {
	pool  *plugins
	of    pluginProgram
	mutex sync.Mutex
	// Another one when the plugin is configured.
	process *pluginProcess
	closed  bool
}

func (p *plugins) use(of pluginProgram) (*pluginUse, error) {
	process, err := p.take(of)
	if err != nil {
		return nil, err
	}
	return &pluginUse{pool: p, of: of, process: process}, nil
}

func (u *pluginUse) current() *pluginProcess {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.process
}

// change releases the former process; the other one where the use has ended while it waited.
func (u *pluginUse) change(to *pluginProcess) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if !u.closed {
		u.process, to = to, u.process
	}
	u.pool.release(to)
}

func (u *pluginUse) close() {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if !u.closed {
		u.closed = true
		u.pool.end(u.process)
	}
}

// call makes one call of the update's.
func (u *pluginUse) call(ctx context.Context, method string, request, reply proto.Message) error {
	switch path.Base(method) {
	case "Handshake", "Attach":
		return status.Error(codes.Unimplemented, method) // it was done when the process was started
	case "Cancel":
		return u.pool.cancel(ctx, u.current())
	case "Configure":
		return u.configure(ctx, request.(*pulumirpc.ConfigureRequest), reply.(*pulumirpc.ConfigureResponse))
	case "Parameterize":
		if err := u.useAlone(); err != nil {
			return err
		}
	}
	return u.pool.call(ctx, u.current(), method, request, reply)
}

// call does not wait for a plugin when the update is to end at once; that plugin serves no other update.
func (p *plugins) call(ctx context.Context, process *pluginProcess, method string, request, reply proto.Message) error {
	held := propertiesIn(request)
	process.secrets.hold(held)
	// What it prints meanwhile is read a little later.
	defer time.AfterFunc(secretsHeld, func() { process.secrets.drop(held) })
	err := process.call(ctx, method, request, reply)
	if ctx.Err() != nil {
		p.drain(process)
		return status.FromContextError(ctx.Err()).Err()
	}
	if failures, isCheck := reply.(interface {
		GetFailures() []*pulumirpc.CheckFailure
	}); isCheck {
		for _, failure := range failures.GetFailures() {
			failure.Reason = process.secrets.hide(failure.Reason)
		}
	}
	p.mutex.Lock()
	why := process.killed
	p.mutex.Unlock()
	if err != nil && why != "" {
		return status.Error(codes.ResourceExhausted, why)
	}
	if told := status.Convert(err); told.Code() == codes.Unavailable {
		err = status.Errorf(codes.Unavailable, "the plugin %s has ended while it was at work: %s", process.of.Name, told.Message())
	}
	return process.secrets.hideIn(err)
}

// configure changes to the process of the configuration, or configures one that has none.
func (u *pluginUse) configure(
	ctx context.Context, request *pulumirpc.ConfigureRequest, reply *pulumirpc.ConfigureResponse,
) error {
	p, process := u.pool, u.current()
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(request.GetArgs())
	if err != nil {
		return err
	}
	wanted := p.digest(bytes)
	// Others with this configuration wait until it has been accepted; those with another one do not.
	defer p.turns.wait(process.programDigest + wanted)()
	if answer := p.configuredAs(process, wanted); answer != nil {
		proto.Merge(reply, answer)
		return nil
	}
	if other := p.alive(process.programDigest, wanted); other != nil {
		u.change(other)
		proto.Merge(reply, p.configuredAs(other, wanted))
		return nil
	}
	if !p.claim(process, wanted) {
		if process, err = p.add(process.programDigest, u.of, wanted); err != nil {
			return err
		}
		u.change(process)
	}
	process.secrets.hold(propertiesIn(request)) // for as long as it lives
	err = p.call(ctx, process, pulumirpc.ResourceProvider_Configure_FullMethodName, request, reply)
	if err != nil {
		p.drain(process)
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	process.configured = proto.CloneOf(reply)
	return nil
}

// useAlone takes a process of its own: to parameterize one makes another provider of it, which only this update wants.
func (u *pluginUse) useAlone() error {
	process, err := u.pool.add(u.current().programDigest, u.of, "")
	if err != nil {
		return err
	}
	u.pool.drain(process)
	u.change(process)
	return nil
}
