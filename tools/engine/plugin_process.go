package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/diy/unauthenticatedregistry"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	pulumienv "github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// hosted is a process with a host of its own, so that cancellation, logs and the end are its alone.
type hosted struct {
	plugin.Provider
	host    plugin.Host
	context *plugin.Context
}

func (s *server) startPlugin(
	descriptor workspace.PluginDescriptor, e env.Env, secrets *secretWords,
) (process, error) {
	sink := pluginSink{s, descriptor, secrets}
	registry := unauthenticatedregistry.New(sink, pulumienv.Global())
	ctx := context.Background()
	host, err := backend.DefaultHostFactory(registry)(ctx, sink, sink, noDebugging{})
	if err != nil {
		return nil, err
	}
	root := os.TempDir()
	own, err := plugin.NewContextWithRoot(ctx, sink, sink, host, root, root, nil, false, nil, nil, nil, nil)
	if err != nil {
		_ = host.Close()
		return nil, err
	}
	provider, err := host.Provider(own, descriptor, e)
	if err != nil {
		_, _ = own.Close(), host.Close()
		return nil, err
	}
	return &hosted{provider, host, own}, nil
}

func (h *hosted) end() {
	_, _ = h.context.Close(), h.host.Close()
}

type noDebugging struct{}

func (noDebugging) StartDebugging(plugin.DebuggingInfo) error { return nil }
func (noDebugging) AttachDebugger(plugin.DebugSpec) bool      { return false }

// pluginSink gives the operator's log what a plugin prints and says, with the plugin's name.
type pluginSink struct {
	server     *server
	descriptor workspace.PluginDescriptor
	secrets    *secretWords
}

func (p pluginSink) Logf(severity diag.Severity, d *diag.Diag, args ...any) {
	said := d.Message
	if !d.Raw {
		said = fmt.Sprintf(said, args...)
	}
	// What a plugin that exits early has printed was logged when it did so, without the secrets of that moment.
	said, _, _ = strings.Cut(said, "To assist with debugging we have dumped")
	said = strings.TrimSpace(p.secrets.hide(colors.Never.Colorize(said)))
	if said == "" {
		return
	}
	facts := map[string]any{"plugin": p.descriptor.Name, "line": redacted(said, p.server.backendURL)}
	if p.descriptor.Version != nil {
		facts["version"] = p.descriptor.Version.String()
	}
	if d.URN != "" {
		facts["urn"] = d.URN
	}
	if severity != diag.Debug {
		facts["severity"] = severity
	}
	p.server.conn.Notify("log", map[string]any{"message": "a plugin says", "facts": facts})
}

func (p pluginSink) Debugf(d *diag.Diag, args ...any)   { p.Logf(diag.Debug, d, args...) }
func (p pluginSink) Infof(d *diag.Diag, args ...any)    { p.Logf(diag.Info, d, args...) }
func (p pluginSink) Infoerrf(d *diag.Diag, args ...any) { p.Logf(diag.Infoerr, d, args...) }
func (p pluginSink) Errorf(d *diag.Diag, args ...any)   { p.Logf(diag.Error, d, args...) }
func (p pluginSink) Warningf(d *diag.Diag, args ...any) { p.Logf(diag.Warning, d, args...) }
