package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"

	"kindstack.dev/tools/engine/state"
)

// program is what an operation registers: as data, or by a language runtime that is asked at an address.
type program struct {
	Resources []declaration `json:"resources"`
	Address   string        `json:"address"`
}

// declaration is what a program says of one resource. A component has no inputs.
type declaration struct {
	Type   string         `json:"type"`
	Name   string         `json:"name"`
	Inputs map[string]any `json:"inputs"`
	// Parent is the index of a resource that was declared before; nil for the stack.
	Parent *int `json:"parent"`
	// DependsOn are indexes of resources that were declared before.
	DependsOn []int `json:"dependsOn"`
	// Options are fields of a RegisterResourceRequest, in its JSON form.
	Options json.RawMessage `json:"options"`
	// AliasParents are resources that were declared before, by the index of the alias in the options.
	AliasParents map[int]int `json:"aliasParents"`
}

// declared is the language runtime of a program as data.
type declared struct {
	plugin.LanguageRuntime
	op *operation
}

func (*declared) Close() error                 { return nil }
func (*declared) Cancel(context.Context) error { return nil }
func (*declared) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	return plugin.PluginInfo{}, nil
}

func (*declared) GetRequiredPackages(
	context.Context, plugin.ProgramInfo,
) ([]workspace.PackageDescriptor, []workspace.PackageSpec, error) {
	return nil, nil, nil
}

// Run registers the resources at the engine, each as soon as those that it needs are there.
func (d *declared) Run(ctx context.Context, info plugin.RunInfo) (failure string, bail bool, err error) {
	conn, err := grpc.NewClient(info.MonitorAddress, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return "", false, err
	}
	defer func() { _ = conn.Close() }()
	monitor := pulumirpc.NewResourceMonitorClient(conn)
	stackName := state.Project + "-" + d.op.Stack
	top, err := monitor.RegisterResource(ctx, requestOf(string(resource.RootStackType), stackName))
	if err != nil {
		return "", true, nil
	}
	all := d.op.Program.Resources
	run := &registering{op: d.op, monitor: monitor, stack: top.GetUrn(), urnOf: make([]func() string, len(all))}
	for i := range all {
		run.urnOf[i] = sync.OnceValue(func() string { return run.register(ctx, &all[i]) })
	}
	var wait sync.WaitGroup
	for _, register := range run.urnOf {
		wait.Go(func() { register() })
	}
	wait.Wait()
	if message := run.message.Load(); message != nil {
		return *message, false, nil
	}
	// What was not registered because something failed must not be deleted for that: the engine hears of it.
	return "", run.failed.Load(), nil
}

const maxMessage = 400 << 20 // what the SDK's own server allows

type registering struct {
	op      *operation
	monitor pulumirpc.ResourceMonitorClient
	stack   string
	// By index, what registers a resource once, and returns its URN; empty when it was not made.
	urnOf  []func() string
	failed atomic.Bool
	// An error that the engine has not told of.
	message atomic.Pointer[string]
}

func (r *registering) register(ctx context.Context, d *declaration) string {
	request := requestOf(d.Type, d.Name)
	request.Parent = r.stack
	if d.Parent != nil {
		if request.Parent = r.urnOf[*d.Parent](); request.Parent == "" {
			return ""
		}
	}
	if d.Options != nil {
		options := &pulumirpc.RegisterResourceRequest{}
		if err := protojson.Unmarshal(d.Options, options); err != nil {
			return r.fail(fmt.Sprintf("%s: %v", d.Name, err))
		}
		proto.Merge(request, options)
	}
	for alias, index := range d.AliasParents {
		urn := r.urnOf[index]()
		if urn == "" {
			return ""
		}
		request.Aliases[alias].GetSpec().Parent = &pulumirpc.Alias_Spec_ParentUrn{ParentUrn: urn}
	}
	if d.Inputs != nil {
		object, err := structpb.NewStruct(d.Inputs)
		if err != nil {
			return r.fail(fmt.Sprintf("%s: %v", d.Name, err))
		}
		request.Custom, request.Object = true, object
	}
	for _, index := range d.DependsOn {
		urn := r.urnOf[index]()
		if urn == "" {
			return ""
		}
		request.Dependencies = append(request.Dependencies, urn)
	}
	if len(d.DependsOn) > 0 {
		// Without this, the engine assumes that every property depends on all these resources: when one of them is replaced,
		// it replaces this one too, with unknown properties.
		request.PropertyDependencies = map[string]*pulumirpc.RegisterResourceRequest_PropertyDependencies{}
		for property := range d.Inputs {
			request.PropertyDependencies[property] = &pulumirpc.RegisterResourceRequest_PropertyDependencies{}
		}
	}
	ctx, done := r.op.pending.begin(ctx, r.op.Stack, request)
	defer done()
	answer, err := r.monitor.RegisterResource(ctx, request)
	if code := status.Code(err); err != nil && code != codes.Unavailable && code != codes.Canceled {
		return r.fail(status.Convert(err).Message())
	}
	// The engine continues with what does not depend on what failed, skips what does, and fails in the end.
	if err != nil || answer.GetUrn() == "" {
		r.failed.Store(true)
	} else if d.Inputs == nil {
		// A component is done when its outputs are known.
		_, err = r.monitor.RegisterResourceOutputs(ctx, &pulumirpc.RegisterResourceOutputsRequest{
			Urn: answer.GetUrn(), Outputs: &structpb.Struct{},
		})
		if err != nil {
			r.failed.Store(true)
		}
	}
	return answer.GetUrn()
}

func (r *registering) fail(message string) string {
	r.failed.Store(true)
	r.message.CompareAndSwap(nil, &message)
	return ""
}

func requestOf(token, name string) *pulumirpc.RegisterResourceRequest {
	return &pulumirpc.RegisterResourceRequest{
		Type: token, Name: name, AcceptSecrets: true, AcceptResources: true, SupportsPartialValues: true, AliasSpecs: true,
		SupportsResultReporting: true,
	}
}

// registrations are those that wait for the engine's answer: what ends the wait, by URN.
type registrations struct{ waiting sync.Map }

func (r *registrations) begin(
	ctx context.Context, stack string, request *pulumirpc.RegisterResourceRequest,
) (context.Context, func()) {
	parentType := resource.URN(request.GetParent()).QualifiedType()
	urn := string(resource.NewURN(
		tokens.QName(stack), tokens.PackageName(state.Project), parentType, tokens.Type(request.GetType()), request.GetName()))
	ctx, cancel := context.WithCancel(ctx)
	r.waiting.Store(urn, cancel)
	return ctx, func() {
		r.waiting.Delete(urn)
		cancel()
	}
}

func (r *registrations) abandon(urn string) {
	if cancel, waits := r.waiting.Load(urn); waits {
		cancel.(context.CancelFunc)()
	}
}
