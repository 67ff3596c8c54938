package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/backend"
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
	Stack   string  `json:"stack"`
	Program program `json:"program"`
	// Object is the UID of the object that the stack is of.
	Object string `json:"object"`
	// MustExist tells that the object has had the stack: where it is neither there nor destroyed, the state is lost.
	MustExist bool `json:"mustExist"`
	// Guard is saved with what the operation leaves, see state/guard.go.
	Guard *state.Guard `json:"guard"`
	// Refresh compares the state with the real world first.
	Refresh bool `json:"refresh"`
	// SavesOnce saves the state at the end instead of after each step.
	SavesOnce bool `json:"savesOnce"`
	// Plans makes a preview answer its plan, and ask what its steps would overwrite.
	Plans bool `json:"plans"`
	// Outputs tells that the operator has outputs for the stack itself.
	Outputs bool `json:"outputs"`
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
	pending registrations
	refused refusals
	// Ends when the operation is to wait for nothing any more.
	life      context.Context
	terminate context.CancelFunc
	// The engine's own form of that, which also ends after the steps that run.
	context *cancel.Context
	source  *cancel.Source
}

// outcome is how an operation ended; its events tell the rest.
type outcome struct {
	// Exists tells whether there was such a stack.
	Exists    bool `json:"exists"`
	Succeeded bool `json:"succeeded"`
	// Destroyed tells that there is no such stack because it was destroyed for its object.
	Destroyed bool `json:"destroyed,omitempty"`
	// Missing tells that a stack that must exist does not; nothing was done.
	Missing bool `json:"missing,omitempty"`
	// Message is the engine's own error where no event tells why the operation failed.
	Message string `json:"message,omitempty"`
	// Plan is what holds an update to what a preview told, where it was asked for.
	Plan *plan `json:"plan,omitempty"`
	// Outdated tells of an operation that ended because it would have done something else than its plan.
	Outdated bool `json:"outdated,omitempty"`
	// PhasesMs are how long its parts took, in milliseconds.
	PhasesMs map[string]float64 `json:"phasesMs"`
}

func newOperation(s *server, id int64, method string, p operationParams) *operation {
	op := &operation{operationParams: p, server: s, id: id, method: method}
	op.life, op.terminate = context.WithCancel(context.Background())
	op.context, op.source = cancel.NewContext(op.life)
	return op
}

// isDry tells of an operation that changes nothing.
func (op *operation) isDry() bool { return op.method == "preview" || op.method == "previewDestroy" }

func (op *operation) writes() bool {
	return slices.Contains([]string{"up", "destroy", "import", "unprotect"}, op.method)
}

func (op *operation) run(ctx context.Context) (*outcome, error) {
	defer op.terminate() // ends what the engine keeps for an operation
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
			return nil, unreadable{err}
		}
		defer unlock()
		phase("lock")
	}
	snapshot, exists, err := stacks.Load(ctx, op.Stack)
	if err != nil {
		return nil, unreadable{err}
	}
	done.Exists = exists
	phase("load")
	if !exists {
		if isOver, err := op.runWithout(ctx, done); isOver || err != nil {
			return done, err
		}
	}
	if op.method == "destroy" && !op.Plan.coversDestroy(snapshot) {
		done.Outdated = true
		done.Message = "the stack has other resources than those whose deletion was planned"
		return done, nil
	}
	if op.method == "destroy" || op.method == "previewDestroy" {
		if hooks := dropHooks(snapshot); len(hooks) > 0 && !op.isDry() {
			op.server.conn.Log("a deletion runs no hooks of resources", map[string]any{"stack": op.Stack, "hooks": hooks})
		}
	}
	made, collected, err := op.execute(ctx, snapshot)
	if collected == nil {
		return nil, err // the engine was not called
	}
	phase("run")
	if op.Plans && err == nil {
		if done.Plan, err = op.planOf(made, snapshot); err != nil {
			return nil, err
		}
	}
	done.Outdated = err != nil && op.Plan != nil && collected.violates(err.Error())
	done.Succeeded = err == nil
	if err != nil && !result.IsBail(err) {
		done.Message = redacted(err.Error(), op.server.backendURL)
	}
	if op.isDry() {
		return done, nil
	}
	err = op.conclude(ctx, done, collected)
	phase("save")
	return done, err
}

// runWithout decides what an operation comes to where there is no such stack. It returns whether that is all.
func (op *operation) runWithout(ctx context.Context, done *outcome) (bool, error) {
	makes := op.method == "up" || op.method == "preview"
	if !op.MustExist {
		done.Succeeded = !makes
		return !makes, nil
	}
	destroyed, err := op.server.stacks.IsDestroyed(ctx, op.Stack, op.Object)
	if err != nil {
		return true, unreadable{err}
	}
	done.Destroyed = destroyed && !makes
	done.Succeeded = done.Destroyed
	done.Missing = !done.Destroyed
	return true, nil
}

// conclude removes the stack after a destroy, and makes the entry in its history after anything else that is worth one.
func (op *operation) conclude(ctx context.Context, done *outcome, collected *collector) error {
	stacks := op.server.stacks
	if done.Succeeded && op.method == "destroy" {
		return stacks.Destroyed(ctx, op.Stack, op.Object)
	}
	if !done.Succeeded {
		// The provider did not answer in time, or the state was saved before it did.
		if err := stacks.ForgetPending(ctx, op.Stack); err != nil {
			op.warn("failed to remove pending operations", err)
		}
	}
	if op.changedNothing(done, collected) {
		return nil
	}
	if err := stacks.Append(ctx, op.Stack, op.entry(done, collected)); err != nil {
		op.warn("failed to write or clean up the stack's history", err)
	}
	return nil
}

// changedNothing tells of an update after which all is as it was. One with a message was asked for: it stays in the history.
func (op *operation) changedNothing(done *outcome, collected *collector) bool {
	return op.method == "up" && op.Message == "" && done.Succeeded && done.Exists && collected.changedNothing()
}

// execute calls the engine. It returns no collector when it could not.
func (op *operation) execute(ctx context.Context, snapshot *deploy.Snapshot) (*deploy.Plan, *collector, error) {
	name, err := tokens.ParseStackName(op.Stack)
	if err != nil {
		return nil, nil, err
	}
	held, err := op.planOfUpdate()
	if err != nil {
		return nil, nil, err
	}
	update := engine.UpdateInfo{Root: os.TempDir(), Project: project, Target: &deploy.Target{
		Name: name, Organization: "organization", Config: config.Map{}, Decrypter: op.server.manager.Decrypter(),
		Snapshot: snapshot,
	}}
	collected := newCollector(op)
	engineContext := &engine.Context{Cancel: op.context, Events: collected.events, BackendClient: references{op.server.stacks}}
	var snapshots *snapshotManager
	var root *rootOutputs
	if !op.isDry() {
		snapshots = op.newSnapshotManager(ctx, snapshot)
		engineContext.SnapshotManager = sealing{snapshots}
		if op.Outputs {
			root = &rootOutputs{SnapshotManager: engineContext.SnapshotManager}
			engineContext.SnapshotManager = root
		}
	}
	// HostFactory makes what Pulumi's engine asks for plugins in this operation, see host.go.
	options := engine.UpdateOptions{
		Parallel: parallel, ContinueOnError: op.Plan == nil, Refresh: op.Refresh, SkipPluginPreInstall: true,
		ExecKind: "auto.inline", HostFactory: op.newHost, Plan: held, GeneratePlan: op.Plans,
	}
	call := engine.Update
	if op.method == "destroy" || op.method == "previewDestroy" {
		call = engine.Destroy
	}
	made, counts, err := call(update, engineContext, options, op.isDry())
	collected.close()
	collected.counts = counts
	if collected.observer != nil {
		err = errors.Join(err, collected.observer.wait())
	}
	if err == nil && root != nil {
		if unset := root.set(ctx, op); unset != nil {
			op.warn("failed to set the outputs of a stack", unset)
		}
	}
	if snapshots != nil {
		// Even though all steps have succeeded, a state that is not saved is an operation that failed.
		if closed := snapshots.Close(); closed != nil {
			err = errors.Join(closed, err)
		}
	}
	return made, collected, err
}

func (op *operation) warn(message string, err error) {
	op.server.conn.Log(message, map[string]any{
		"stack": op.Stack, "reason": redacted(err.Error(), op.server.backendURL),
	})
}

// waits tells whether nothing has failed but what waits for something else to end.
func (op *operation) waits(done *outcome, collected *collector) bool {
	waiting := op.refused.waiting.Load()
	return !done.Succeeded && done.Message == "" && waiting > 0 && op.refused.failed.Load() == 0 &&
		collected.failedSteps == waiting && !collected.failedOtherwise
}

var updateKinds = map[string]apitype.UpdateKind{"up": apitype.UpdateUpdate, "destroy": apitype.DestroyUpdate}

func (op *operation) entry(done *outcome, collected *collector) *state.Entry {
	changes, unfinished := state.SortedChanges(maps.Values(collected.changed)), state.SortedChanges(maps.Values(collected.unfinished))
	entry := &state.Entry{Changes: changes, Unfinished: unfinished, UpdateInfo: backend.UpdateInfo{
		Kind: updateKinds[op.method], StartTime: collected.started.Unix(), EndTime: time.Now().Unix(), Message: op.Message,
		Config: config.Map{}, Result: backend.FailedResult, ResourceChanges: collected.resourceChanges(),
	}}
	if done.Succeeded {
		entry.Result = backend.SucceededResult
	}
	entry.Waiting = op.waits(done, collected)
	return entry
}
