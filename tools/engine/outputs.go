package main

import (
	"context"
	"encoding/json"
	"maps"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	pkgresource "github.com/pulumi/pulumi/pkg/v3/resource"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// rootOutputs sets the outputs of the stack itself, which the operator knows when all else is done. Until then, and where the
// update fails, the stack has those of before, whatever a program in the SDK's runtime registers.
type rootOutputs struct {
	engine.SnapshotManager
	mutex sync.Mutex
	root  deploy.Step
}

func isRoot(step deploy.Step) bool {
	return step.New() != nil && step.New().Type == resource.RootStackType
}

func (r *rootOutputs) BeginMutation(step deploy.Step) (engine.SnapshotMutation, error) {
	if isRoot(step) {
		r.mutex.Lock()
		r.root = step
		r.mutex.Unlock()
	}
	return r.SnapshotManager.BeginMutation(step)
}

func (r *rootOutputs) RegisterResourceOutputs(step deploy.Step) error {
	if !isRoot(step) {
		return r.SnapshotManager.RegisterResourceOutputs(step)
	}
	before := resource.PropertyMap{}
	if old := step.Old(); old != nil {
		before = maps.Clone(old.Outputs)
	}
	setOutputs(step.New(), before)
	return nil
}

// set asks for the outputs, and has the manager save them where they differ.
func (r *rootOutputs) set(ctx context.Context, op *operation) error {
	r.mutex.Lock()
	root := r.root
	r.mutex.Unlock()
	if root == nil {
		return nil
	}
	answer, err := op.server.conn.Call(ctx, "outputs", map[string]any{"id": op.id})
	if err != nil {
		return err
	}
	var told struct {
		Outputs map[string]any `json:"outputs"`
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		return err
	}
	setOutputs(root.New(), resource.NewPropertyMapFromMap(told.Outputs))
	return r.SnapshotManager.RegisterResourceOutputs(root)
}

func setOutputs(state *pkgresource.State, outputs resource.PropertyMap) {
	state.Lock.Lock()
	defer state.Lock.Unlock()
	state.Outputs = outputs
}
