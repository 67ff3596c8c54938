package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/display"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/util/cancel"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/result"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"

	"kindstack.dev/tools/engine/state"
)

// The engine works on so many resources of a stack at once; their provider may write them together.
const parallel = 64

var project = &workspace.Project{Name: state.Project, Runtime: workspace.NewProjectRuntimeInfo("nodejs", nil)}

type operationParams struct {
	Stack   string   `json:"stack"`
	Program *program `json:"program"`
	// Refresh compares the state with the real world first.
	Refresh bool `json:"refresh"`
	// SavesOnce saves the state at the end instead of after each step.
	SavesOnce bool `json:"savesOnce"`
	// Plans makes a preview answer its plan, and ask what its steps would overwrite.
	Plans bool `json:"plans"`
	// Message stays in the stack's history.
	Message string `json:"message"`
	// Plan is a preview's; `up` and `destroy` do nothing else than what is in it.
	Plan *plan `json:"plan"`
}

// operation is a request that runs.
type operation struct {
	operationParams
	server  *server
	id      int64
	method  string
	context *cancel.Context
	source  *cancel.Source
	pending *registrations
}

// outcome is how an operation ended; its events tell the rest.
type outcome struct {
	// Exists tells whether there was such a stack.
	Exists    bool                    `json:"exists"`
	Succeeded bool                    `json:"succeeded"`
	Changes   display.ResourceChanges `json:"changes,omitempty"`
	// Message is the engine's own error where no event tells why the operation failed.
	Message string `json:"message,omitempty"`
	// Plan is what holds an update to what a preview told, where it was asked for.
	Plan *plan `json:"plan,omitempty"`
	// Outdated tells of an operation that ended because it would have done something else than its plan.
	Outdated bool `json:"outdated,omitempty"`
	// PhasesMs are how long what took, in milliseconds.
	PhasesMs map[string]float64 `json:"phasesMs"`
}

func newOperation(s *server, id int64, method string, p operationParams) *operation {
	op := &operation{operationParams: p, server: s, id: id, method: method, pending: newRegistrations()}
	op.context, op.source = cancel.NewContext(context.Background())
	return op
}

// isDry tells of an operation that changes nothing.
func (op *operation) isDry() bool { return op.method == "preview" || op.method == "previewDestroy" }

func (op *operation) writes() bool {
	switch op.method {
	case "up", "refresh", "destroy", "import", "remove", "unprotect":
		return true
	}
	return false
}

func (op *operation) run(ctx context.Context) (*outcome, error) {
	// Ends what the engine keeps for an operation.
	defer func() { op.source.Cancel(); op.source.Terminate() }()
	done := &outcome{PhasesMs: map[string]float64{}}
	last := time.Now()
	phase := func(name string) {
		now := time.Now()
		done.PhasesMs[name] = float64(now.Sub(last).Microseconds()) / 1000
		last = now
	}
	stacks := op.server.stacks
	if !op.isDry() {
		unlock, err := stacks.Lock(ctx, op.Stack)
		if err != nil {
			return nil, err
		}
		defer unlock()
		phase("lock")
	}
	snapshot, exists, err := stacks.Load(ctx, op.Stack)
	if err != nil {
		return nil, err
	}
	done.Exists = exists
	phase("load")
	if !exists && op.method != "up" && op.method != "preview" {
		done.Succeeded = true
		return done, nil
	}
	if op.method == "destroy" && !op.Plan.coversDestroy(snapshot) {
		done.Outdated = true
		done.Message = "the stack has other resources than those whose deletion was planned"
		return done, nil
	}
	made, changes, collected, err := op.execute(ctx, snapshot)
	if collected == nil {
		return nil, err // it did not begin
	}
	phase("run")
	if op.Plans && err == nil {
		if done.Plan, err = op.planOf(ctx, made, snapshot); err != nil {
			return nil, err
		}
	}
	done.Outdated = err != nil && op.Plan != nil && collected.violates(err.Error())
	done.Changes = changes
	done.Succeeded = err == nil
	if err != nil && !result.IsBail(err) {
		done.Message = redacted(err.Error(), op.server.backendURL)
	}
	if op.isDry() {
		return done, nil
	}
	if err != nil {
		// The provider did not answer in time, or the state was saved before it did.
		if err := stacks.ForgetPending(ctx, op.Stack); err != nil {
			op.warn("failed to remove pending operations", err)
		}
	}
	if done.Succeeded && op.method == "destroy" {
		err = stacks.Remove(ctx, op.Stack)
	} else {
		err = stacks.Append(ctx, op.Stack, op.entry(done, collected))
	}
	phase("save")
	if err != nil && done.Succeeded && op.method == "destroy" {
		return nil, err
	} else if err != nil {
		op.warn("failed to write or clean up the stack's history", err)
	}
	return done, nil
}

// execute calls the engine.
func (op *operation) execute(
	ctx context.Context, snapshot *deploy.Snapshot,
) (*deploy.Plan, display.ResourceChanges, *collector, error) {
	name, err := tokens.ParseStackName(op.Stack)
	if err != nil {
		return nil, nil, nil, err
	}
	manager := op.server.manager
	held, err := op.planOfUpdate()
	if err != nil {
		return nil, nil, nil, err
	}
	update := engine.UpdateInfo{Root: os.TempDir(), Project: project, Target: &deploy.Target{
		Name: name, Organization: "organization", Config: config.Map{}, Decrypter: manager.Decrypter(), Snapshot: snapshot,
	}}
	collected := newCollector(op)
	engineContext := &engine.Context{Cancel: op.context, Events: collected.events, BackendClient: references{op.server.stacks}}
	var snapshots *backend.SnapshotManager
	if !op.isDry() {
		snapshots = newSnapshotManager(persister{ctx, op}, manager, snapshot, op.SavesOnce)
		engineContext.SnapshotManager = sealing{snapshots}
	}
	options := engine.UpdateOptions{
		Parallel: parallel, ContinueOnError: op.Plan == nil, Refresh: op.Refresh, SkipPluginPreInstall: true,
		ExecKind: "auto.inline", HostFactory: op.newHost, Plan: held, GeneratePlan: op.Plans,
	}
	var made *deploy.Plan
	var changes display.ResourceChanges
	switch op.method {
	case "destroy", "previewDestroy":
		_, changes, err = engine.Destroy(update, engineContext, options, op.isDry())
	case "refresh":
		_, changes, err = engine.Refresh(update, engineContext, options, false)
	default:
		made, changes, err = engine.Update(update, engineContext, options, op.isDry())
	}
	collected.close()
	if collected.observer != nil {
		err = errors.Join(err, collected.observer.wait())
	}
	if snapshots != nil {
		// Even though all steps have succeeded, a state that is not saved is an operation that failed.
		if closed := snapshots.Close(); closed != nil {
			err = errors.Join(closed, err)
		}
	}
	return made, changes, collected, err
}

func (op *operation) warn(message string, err error) {
	op.server.conn.Notify("log", map[string]any{
		"message": message,
		"facts":   map[string]any{"stack": op.Stack, "reason": redacted(err.Error(), op.server.backendURL)},
	})
}

// persister saves the snapshots of an operation.
type persister struct {
	ctx context.Context
	op  *operation
}

func (p persister) Save(deployment apitype.TypedDeployment) error {
	return p.op.server.stacks.Save(p.ctx, p.op.Stack, deployment)
}

// The snapshot manager reads from the environment whether it saves once, when it is made.
var making sync.Mutex

const skipCheckpoints = "PULUMI_SKIP_CHECKPOINTS"

func (op *operation) entry(done *outcome, collected *collector) *state.Entry {
	kinds := map[string]apitype.UpdateKind{
		"up": apitype.UpdateUpdate, "destroy": apitype.DestroyUpdate, "refresh": apitype.RefreshUpdate,
	}
	entry := &state.Entry{Changes: collected.changes()}
	entry.Kind = kinds[op.method]
	entry.StartTime, entry.EndTime = collected.started.Unix(), time.Now().Unix()
	entry.Message = op.Message
	entry.Config = config.Map{}
	entry.Result = backend.FailedResult
	if done.Succeeded {
		entry.Result = backend.SucceededResult
	}
	entry.ResourceChanges = done.Changes
	return entry
}
