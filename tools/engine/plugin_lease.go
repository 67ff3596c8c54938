package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// lease is one update's use of a warm plugin. Its errors have no secrets of the configuration or of the resource.
type lease struct {
	plugin.Provider
	pool       *plugins
	descriptor workspace.PluginDescriptor
	env        env.Env
	// Closed when the update is to end at once.
	terminated <-chan struct{}
	warm       *warmPlugin
	released   sync.Once
}

func (p *plugins) lease(
	descriptor workspace.PluginDescriptor, e env.Env, terminated <-chan struct{},
) (*lease, error) {
	warm, err := p.take(descriptor, e)
	if err != nil {
		return nil, err
	}
	return &lease{Provider: warm, pool: p, descriptor: descriptor, env: e, terminated: terminated, warm: warm}, nil
}

func (l *lease) use(warm *warmPlugin) {
	l.pool.release(l.warm)
	l.warm, l.Provider = warm, warm
}

var errTerminated = errors.New("the update was ended while the plugin was at work")

// call does not wait for a plugin when the update is to end at once; that plugin serves no other update.
func call[T any](
	l *lease, of func() (T, error), properties ...resource.PropertyMap,
) (T, error) {
	words := l.warm.secrets
	for _, held := range properties {
		words.hold(held)
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		value, err := of()
		err = words.hideIn(err)
		// What it has printed meanwhile is read a little later.
		time.AfterFunc(secretsHeld, func() {
			for _, held := range properties {
				words.drop(held)
			}
		})
		answered <- answer{value, err}
	}()
	select {
	case got := <-answered:
		return got.value, got.err
	case <-l.terminated:
		l.pool.drain(l.warm)
		var none T
		return none, errTerminated
	}
}

func (l *lease) CheckConfig(ctx context.Context, r plugin.CheckConfigRequest) (plugin.CheckConfigResponse, error) {
	return call(l, func() (plugin.CheckConfigResponse, error) { return l.Provider.CheckConfig(ctx, r) }, resource.ToResourcePropertyMap(r.News))
}

func (l *lease) DiffConfig(ctx context.Context, r plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	return call(l, func() (plugin.DiffConfigResponse, error) { return l.Provider.DiffConfig(ctx, r) }, r.OldInputs, r.NewInputs)
}

// Configure changes to the process of the configuration, or configures one that has none.
func (l *lease) Configure(ctx context.Context, request plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	p := l.pool
	defer p.startOf(l.warm.program)()
	inputs, err := plugin.MarshalProperties(request.Inputs, plugin.MarshalOptions{
		KeepUnknowns: true, KeepSecrets: true, KeepResources: true, KeepOutputValues: true,
	})
	if err != nil {
		return plugin.ConfigureResponse{}, err
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(inputs)
	if err != nil {
		return plugin.ConfigureResponse{}, err
	}
	wanted := p.digest(bytes)
	configured := p.configurationOf(l.warm)
	if configured == wanted {
		return plugin.ConfigureResponse{}, nil
	}
	if warm := p.alive(l.warm.program, func(configuration string) bool { return configuration == wanted }); warm != nil {
		l.use(warm)
		return plugin.ConfigureResponse{}, nil
	}
	warm := l.warm
	if configured != "" || p.isDraining(warm) {
		if warm, err = p.add(warm.program, l.descriptor, l.env); err != nil {
			return plugin.ConfigureResponse{}, err
		}
		l.use(warm)
	}
	warm.secrets.hold(request.Inputs)
	response, err := call(l, func() (plugin.ConfigureResponse, error) { return warm.Configure(ctx, request) })
	if err != nil {
		p.drain(warm)
		return response, err
	}
	p.mutex.Lock()
	warm.configuration = wanted
	p.mutex.Unlock()
	return response, nil
}

func (l *lease) Check(ctx context.Context, r plugin.CheckRequest) (plugin.CheckResponse, error) {
	return call(l, func() (plugin.CheckResponse, error) {
		answer, err := l.Provider.Check(ctx, r)
		for i := range answer.Failures {
			answer.Failures[i].Reason = l.warm.secrets.hide(answer.Failures[i].Reason)
		}
		return answer, err
	}, r.News)
}

func (l *lease) Diff(ctx context.Context, r plugin.DiffRequest) (plugin.DiffResponse, error) {
	return call(l, func() (plugin.DiffResponse, error) { return l.Provider.Diff(ctx, r) }, r.OldInputs, r.NewInputs)
}

func (l *lease) Create(ctx context.Context, r plugin.CreateRequest) (plugin.CreateResponse, error) {
	return call(l, func() (plugin.CreateResponse, error) { return l.Provider.Create(ctx, r) }, r.Properties)
}

func (l *lease) Read(ctx context.Context, r plugin.ReadRequest) (plugin.ReadResponse, error) {
	return call(l, func() (plugin.ReadResponse, error) { return l.Provider.Read(ctx, r) }, r.Inputs, r.State)
}

func (l *lease) Update(ctx context.Context, r plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	return call(l, func() (plugin.UpdateResponse, error) { return l.Provider.Update(ctx, r) }, r.OldInputs, r.NewInputs)
}

func (l *lease) Delete(ctx context.Context, r plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	return call(l, func() (plugin.DeleteResponse, error) { return l.Provider.Delete(ctx, r) }, r.Inputs, r.Outputs)
}

func (l *lease) Invoke(ctx context.Context, r plugin.InvokeRequest) (plugin.InvokeResponse, error) {
	return call(l, func() (plugin.InvokeResponse, error) { return l.Provider.Invoke(ctx, r) }, resource.ToResourcePropertyMap(r.Args))
}

// Parameterize makes another provider of the process, which only this update wants.
func (l *lease) Parameterize(ctx context.Context, r plugin.ParameterizeRequest) (plugin.ParameterizeResponse, error) {
	defer l.pool.startOf(l.warm.program)()
	warm, err := l.pool.add(l.warm.program, l.descriptor, l.env)
	if err != nil {
		return plugin.ParameterizeResponse{}, err
	}
	l.pool.drain(warm)
	l.use(warm)
	return l.Provider.Parameterize(ctx, r)
}

func (l *lease) SignalCancellation(ctx context.Context) error { return l.pool.cancel(ctx, l.warm) }

func (l *lease) Close() error {
	l.released.Do(func() { l.pool.end(l.warm) })
	return nil
}
