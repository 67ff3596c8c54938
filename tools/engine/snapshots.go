package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/property"

	"kindstack.dev/tools/engine/state"
)

// persister saves the snapshots of an operation.
type persister func(apitype.TypedDeployment) error

func (p persister) Save(deployment apitype.TypedDeployment) error { return p(deployment) }

// snapshotManager does not tell the engine that outputs were not saved, but at the end. With ContinueOnError, Pulumi fails the
// step of this error, and has none. It has the same error when an operation is ended at once: the engine does not wait for
// what it has begun, and what that has to save is saved no more.
type snapshotManager struct {
	*backend.SnapshotManager
	unsaved atomic.Pointer[error]
}

func (m *snapshotManager) RegisterResourceOutputs(step deploy.Step) error {
	if err := m.SnapshotManager.RegisterResourceOutputs(step); err != nil {
		m.unsaved.CompareAndSwap(nil, &err)
	}
	return nil
}

func (m *snapshotManager) Close() error {
	err := m.SnapshotManager.Close()
	if unsaved := m.unsaved.Load(); unsaved != nil {
		err = errors.Join(*unsaved, err)
	}
	return err
}

// The snapshot manager reads from the environment whether it saves once, when it is made.
var making sync.Mutex

func (op *operation) newSnapshotManager(ctx context.Context, snapshot *deploy.Snapshot) *snapshotManager {
	making.Lock()
	defer making.Unlock()
	if op.SavesOnce {
		name := env.SkipCheckpoints.Var().Name()
		_ = os.Setenv(name, "true")
		defer func() { _ = os.Unsetenv(name) }()
	}
	save := func(deployment apitype.TypedDeployment) error {
		if op.method == "destroy" && op.SavesOnce && len(deployment.Deployment.Resources) == 0 {
			return nil // it is removed next; after a crash before that, the deletions are repeated
		}
		deployment.Deployment = op.Guard.Add(deployment.Deployment, op.Stack)
		return op.server.stacks.Save(ctx, op.Stack, deployment)
	}
	return &snapshotManager{SnapshotManager: backend.NewSnapshotManager(persister(save), op.server.manager, snapshot, nil)}
}

// references answers a program's stack references.
type references struct{ stacks *state.Stacks }

func (r references) GetStackOutputs(
	ctx context.Context, name string, _ func(error) error,
) (property.Map, error) {
	snapshot, err := r.load(ctx, name)
	if err != nil {
		return property.Map{}, err
	}
	root, err := stack.GetRootStackResource(snapshot)
	if root == nil || err != nil {
		return property.Map{}, err
	}
	return resource.FromResourcePropertyMap(root.Outputs), nil
}

func (r references) GetStackResourceOutputs(ctx context.Context, name string) (property.Map, error) {
	snapshot, err := r.load(ctx, name)
	if err != nil {
		return property.Map{}, err
	}
	all := map[string]property.Value{}
	for _, r := range snapshot.Resources {
		if !r.Delete {
			all[string(r.URN)] = property.New(map[string]property.Value{
				"type": property.New(string(r.Type)), "outputs": property.New(resource.FromResourcePropertyMap(r.Outputs)),
			})
		}
	}
	return property.NewMap(all), nil
}

// load takes a stack's name with or without its organization and project.
func (r references) load(ctx context.Context, name string) (*deploy.Snapshot, error) {
	parts := strings.Split(name, "/")
	if len(parts) == 3 && parts[1] != state.Project {
		return nil, fmt.Errorf("the stack %s is not of the project %s", name, state.Project)
	}
	snapshot, exists, err := r.stacks.Load(ctx, parts[len(parts)-1])
	if err == nil && !exists {
		err = fmt.Errorf("there is no stack %s", name)
	}
	if snapshot == nil {
		snapshot = &deploy.Snapshot{}
	}
	return snapshot, err
}
