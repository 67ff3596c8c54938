package main

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/diy/unauthenticatedregistry"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	pulumienv "github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// host gives an operation its plugins: the program and the dynamic providers are the operator's, and everything else, such
// as what an SDK asks while it runs a program, is what Pulumi's own host makes of it. Two others have the word: the host of
// plugins (plugin_host.go) is a process beside the engine that has the plugins' processes, and the operator's provider host
// (providers/host/session.ts) calls the dynamic providers.
type host struct {
	plugin.Host
	op *operation
	// Where the program's language runtime is asked; nil for a program that is data.
	program *grpc.ClientConn

	mutex   sync.Mutex
	plugins []*usedPlugin
}

const dynamicProviders = "pulumi-nodejs"

// newHost makes Pulumi's own host only where it is asked: it listens on a port, for which most operations have no use.
func (op *operation) newHost(
	ctx context.Context, sink, statusSink diag.Sink, debugging plugin.DebugContext,
) (plugin.Host, error) {
	if op.Program.Address == "" {
		return &host{op: op, Host: &plugin.MockHost{}}, nil // answers that it has nothing
	}
	program, err := grpc.NewClient(op.Program.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	registry := unauthenticatedregistry.New(sink, pulumienv.Global())
	stock, err := backend.DefaultHostFactory(registry)(ctx, sink, statusSink, debugging)
	return &host{op: op, Host: stock, program: program}, err
}

func (h *host) Provider(
	ctx *plugin.Context, descriptor workspace.PluginDescriptor, e env.Env,
) (plugin.Provider, error) {
	if descriptor.Name == dynamicProviders {
		client := pulumirpc.NewResourceProviderClient(&providerConn{op: h.op})
		return hidingDrift{plugin.NewProviderWithClient(ctx, client, false)}, nil
	}
	used, err := h.op.usePlugin(ctx, programOf(descriptor, e))
	if err != nil {
		return nil, err
	}
	h.mutex.Lock()
	h.plugins = append(h.plugins, used)
	h.mutex.Unlock()
	return used, nil
}

func (h *host) LanguageRuntime(_ *plugin.Context, _ string) (plugin.LanguageRuntime, error) {
	if h.program == nil {
		return &declared{op: h.op}, nil
	}
	return plugin.NewLanguageRuntimeClient(project.Runtime.Name(), pulumirpc.NewLanguageRuntimeClient(h.program)), nil
}

func (h *host) ResolvePlugin(ctx *plugin.Context, spec workspace.PluginDescriptor) (*workspace.PluginInfo, error) {
	if spec.Name == dynamicProviders || h.program == nil {
		return &workspace.PluginInfo{Name: spec.Name, Kind: spec.Kind, Version: spec.Version}, nil
	}
	return h.Host.ResolvePlugin(ctx, spec)
}

func (h *host) used() []*usedPlugin {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.plugins)
}

func (h *host) SignalCancellation() error {
	for _, used := range h.used() {
		// One that does not answer keeps the others from being told for no longer than this.
		ctx, cancel := context.WithTimeout(context.Background(), pluginAnswers)
		_ = used.SignalCancellation(ctx)
		cancel()
	}
	return nil
}

func (h *host) ReleaseContext(ctx *plugin.Context) error {
	for _, used := range h.used() {
		_ = used.Close()
	}
	return h.Host.ReleaseContext(ctx)
}

func (h *host) Close() error {
	if h.program != nil {
		_ = h.program.Close()
	}
	return h.Host.Close()
}
