package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/blang/semver"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/diy/unauthenticatedregistry"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	pulumienv "github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// pluginProgram is what a process is started from.
type pluginProgram struct {
	Name    string            `json:"name"`
	Version string            `json:"version,omitempty"`
	URL     string            `json:"url,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

func programOf(descriptor workspace.PluginDescriptor, e env.Env) pluginProgram {
	of := pluginProgram{Name: descriptor.Name, URL: descriptor.PluginDownloadURL, Env: map[string]string{}}
	if descriptor.Version != nil {
		of.Version = descriptor.Version.String()
	}
	// What this process has, the host of plugins has too, but for what plugins must not know.
	for name, value := range e.GetStore().Values() {
		if os.Getenv(name) != value {
			of.Env[name] = value
		}
	}
	return of
}

func (of pluginProgram) descriptor() (workspace.PluginDescriptor, error) {
	descriptor := workspace.PluginDescriptor{Name: of.Name, Kind: apitype.ResourcePlugin, PluginDownloadURL: of.URL}
	if of.Version == "" {
		return descriptor, nil
	}
	version, err := semver.Parse(of.Version)
	descriptor.Version = &version
	return descriptor, err
}

// facts are what the log says of it.
func (of pluginProgram) facts() map[string]any {
	facts := map[string]any{"plugin": of.Name}
	if of.Version != "" {
		facts["version"] = of.Version
	}
	return facts
}

// hosted is a process with a host of its own, so that cancellation, logs and the end are its alone.
type hosted struct {
	conn    *grpc.ClientConn
	host    plugin.Host
	context *plugin.Context
	id      int
}

// A variable by which a process is found among those that this one has started: Pulumi's host does not tell its number.
const pluginMark = "KINDSTACK_PLUGIN"

func (h *pluginHost) startPlugin(of pluginProgram, secrets *secretWords) (startedProcess, error) {
	descriptor, err := of.descriptor()
	if err != nil {
		return nil, err
	}
	sink := pluginSink{h, of, secrets}
	registry := unauthenticatedregistry.New(sink, pulumienv.Global())
	ctx := context.Background()
	host, err := backend.DefaultHostFactory(registry)(ctx, sink, sink, &plugin.MockHost{}) // debugs nothing
	if err != nil {
		return nil, err
	}
	root := os.TempDir()
	own, err := plugin.NewContextWithRoot(ctx, sink, sink, host, root, root, nil, false, nil, nil, nil, nil, nil)
	if err != nil {
		_ = host.Close()
		return nil, err
	}
	started := &hosted{host: host, context: own}
	own.DialOptions = started.keepConn
	mark := rand.Text()
	variables := env.MapStore{pluginMark: mark}
	maps.Copy(variables, of.Env)
	if _, err = host.Provider(own, descriptor, env.NewEnv(variables)); err == nil && started.conn == nil {
		err = errors.New("it was not asked anything")
	}
	if err != nil {
		started.end()
		return nil, err
	}
	started.id = processOf(mark)
	return started, nil
}

// keepConn keeps the connection that Pulumi's host makes: what updates say to the plugin passes unchanged.
func (h *hosted) keepConn(any) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker,
		options ...grpc.CallOption,
	) error {
		h.conn = conn
		return next(ctx, method, request, reply, conn, options...)
	})}
}

func processOf(mark string) int {
	for _, pid := range childrenOf("self") {
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if slices.Contains(strings.Split(string(environment), "\x00"), pluginMark+"="+mark) {
			return pid
		}
	}
	return 0
}

func (h *hosted) call(ctx context.Context, method string, request, reply proto.Message) error {
	return h.conn.Invoke(ctx, method, request, reply)
}

func (h *hosted) pid() int        { return h.id }
func (h *hosted) resident() int64 { return residentWithChildren(h.id) }
func (h *hosted) end()            { _, _ = h.context.Close(), h.host.Close() }

func (h *hosted) kill() {
	if h.id > 1 {
		killGroup(h.id)
	}
}

// pluginSink gives the operator's log what a plugin prints and says, with the plugin's name.
type pluginSink struct {
	host    *pluginHost
	of      pluginProgram
	secrets *secretWords
}

func (p pluginSink) Logf(severity diag.Severity, d *diag.Diag, args ...any) {
	said := d.Message
	if !d.Raw {
		said = fmt.Sprintf(said, args...)
	}
	p.host.plugins.countPrinted(p.secrets, len(said))
	// What a plugin that exits early has printed was logged when it did so, without the secrets of that moment.
	said, _, _ = strings.Cut(said, "To assist with debugging we have dumped")
	said = strings.TrimSpace(p.secrets.hide(colors.Never.Colorize(said)))
	if said == "" {
		return
	}
	facts := p.of.facts()
	facts["line"] = said
	if d.URN != "" {
		facts["urn"] = d.URN
	}
	if severity != diag.Debug {
		facts["severity"] = severity
	}
	p.host.conn.Log("a plugin says", facts)
}

func (p pluginSink) Debugf(d *diag.Diag, args ...any)   { p.Logf(diag.Debug, d, args...) }
func (p pluginSink) Infof(d *diag.Diag, args ...any)    { p.Logf(diag.Info, d, args...) }
func (p pluginSink) Infoerrf(d *diag.Diag, args ...any) { p.Logf(diag.Infoerr, d, args...) }
func (p pluginSink) Errorf(d *diag.Diag, args ...any)   { p.Logf(diag.Error, d, args...) }
func (p pluginSink) Warningf(d *diag.Diag, args ...any) { p.Logf(diag.Warning, d, args...) }
