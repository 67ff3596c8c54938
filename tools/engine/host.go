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
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// host gives an operation its plugins: the program and the dynamic providers are the operator's, and everything else, such
// as providers of other packages, is what Pulumi's own host makes of it.
type host struct {
	op    *operation
	stock func() (plugin.Host, error)
	used  bool

	mutex   sync.Mutex
	plugins []*borrowed
}

const dynamicProviders = "pulumi-nodejs"

func (op *operation) newHost(
	ctx context.Context, sink, statusSink diag.Sink, debugging plugin.DebugContext,
) (plugin.Host, error) {
	h := &host{op: op}
	// It listens on a port, for which most operations have no use.
	h.stock = sync.OnceValues(func() (plugin.Host, error) {
		h.used = true
		registry := unauthenticatedregistry.New(sink, pulumienv.Global())
		return backend.DefaultHostFactory(registry)(ctx, sink, statusSink, debugging)
	})
	return h, nil
}

func (h *host) Provider(
	ctx *plugin.Context, descriptor workspace.PluginDescriptor, e env.Env,
) (plugin.Provider, error) {
	if descriptor.Name == dynamicProviders {
		client := pulumirpc.NewResourceProviderClient(&providerConn{h.op, map[string]bool{}, sync.Mutex{}})
		return hidingDrift{plugin.NewProviderWithClient(ctx, client, false)}, nil
	}
	used, err := h.op.borrow(ctx, programOf(descriptor, e))
	if err != nil {
		return nil, err
	}
	h.mutex.Lock()
	h.plugins = append(h.plugins, used)
	h.mutex.Unlock()
	return used, nil
}

func (h *host) LanguageRuntime(_ *plugin.Context, _ string) (plugin.LanguageRuntime, error) {
	p := h.op.Program
	if p == nil || p.Address == "" {
		return &declared{op: h.op}, nil
	}
	conn, err := grpc.NewClient(p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return plugin.NewLanguageRuntimeClient(project.Runtime.Name(), pulumirpc.NewLanguageRuntimeClient(conn)), nil
}

func (h *host) ResolvePlugin(ctx *plugin.Context, spec workspace.PluginDescriptor) (*workspace.PluginInfo, error) {
	if spec.Name == dynamicProviders || h.op.Program == nil || h.op.Program.Address == "" {
		return &workspace.PluginInfo{Name: spec.Name, Kind: spec.Kind, Version: spec.Version}, nil
	}
	stock, err := h.stock()
	if err != nil {
		return nil, err
	}
	return stock.ResolvePlugin(ctx, spec)
}

// ifUsed returns the stock host if there was a use for it.
func (h *host) ifUsed() plugin.Host {
	if !h.used {
		return nil
	}
	stock, _ := h.stock()
	return stock
}

func (h *host) ServerAddr() string {
	if stock := h.ifUsed(); stock != nil {
		return stock.ServerAddr()
	}
	return ""
}

func (h *host) borrowed() []*borrowed {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.plugins)
}

func (h *host) SignalCancellation() error {
	for _, used := range h.borrowed() {
		// One that does not answer keeps the others from being told for no longer than this.
		ctx, cancel := context.WithTimeout(context.Background(), pluginAnswers)
		_ = used.SignalCancellation(ctx)
		cancel()
	}
	return nil
}

func (h *host) ReleaseContext(ctx *plugin.Context) error {
	for _, used := range h.borrowed() {
		_ = used.Close()
	}
	if stock := h.ifUsed(); stock != nil {
		return stock.ReleaseContext(ctx)
	}
	return nil
}

func (h *host) Close() error {
	if stock := h.ifUsed(); stock != nil {
		return stock.Close()
	}
	return nil
}

func (h *host) server(of func(plugin.Host) (*plugin.GrpcServer, error)) (*plugin.GrpcServer, error) {
	if h.op.Program == nil || h.op.Program.Address == "" {
		return nil, nil
	}
	stock, err := h.stock()
	if err != nil {
		return nil, err
	}
	return of(stock)
}

func (h *host) Loader(ctx *plugin.Context) (*plugin.GrpcServer, error) {
	return h.server(func(stock plugin.Host) (*plugin.GrpcServer, error) { return stock.Loader(ctx) })
}

func (h *host) Mapper(ctx *plugin.Context) (*plugin.GrpcServer, error) {
	return h.server(func(stock plugin.Host) (*plugin.GrpcServer, error) { return stock.Mapper(ctx) })
}

func (h *host) Resolver(ctx *plugin.Context) (*plugin.GrpcServer, error) {
	return h.server(func(stock plugin.Host) (*plugin.GrpcServer, error) { return stock.Resolver(ctx) })
}

func (h *host) Log(severity diag.Severity, urn resource.URN, message string, stream int32) {
	if stock := h.ifUsed(); stock != nil {
		stock.Log(severity, urn, message, stream)
	}
}

func (h *host) LogStatus(severity diag.Severity, urn resource.URN, message string, stream int32) {
	if stock := h.ifUsed(); stock != nil {
		stock.LogStatus(severity, urn, message, stream)
	}
}

func (h *host) StartDebugging(plugin.DebuggingInfo) error { return nil }
func (h *host) AttachDebugger(plugin.DebugSpec) bool      { return false }
func (h *host) PolicyAnalyzer(*plugin.Context, tokens.QName, string, *plugin.PolicyAnalyzerOptions) (plugin.Analyzer, error) {
	return nil, nil
}
