package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/pkg/v3/resource/stack"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Export returns a stack's deployment, secrets encrypted; nil for a stack that does not exist.
func (s *Stacks) Export(ctx context.Context, name string) (*apitype.UntypedDeployment, error) {
	data, err := s.read(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	var versioned versionedCheckpoint
	if err == nil {
		versioned, err = unmarshalVersioned(data)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the state of the stack %s: %w", name, err)
	}
	latest := versioned.Checkpoint.Latest
	if len(latest) == 0 || string(latest) == "null" {
		latest = json.RawMessage("{}")
	}
	return &apitype.UntypedDeployment{Version: versioned.Version, Features: versioned.Features, Deployment: latest}, nil
}

// ExportAll exports all stacks, of one moment where the backend can show that.
func (s *Stacks) ExportAll(ctx context.Context, each func(string, *apitype.UntypedDeployment) error) error {
	return s.store.AtOnce(ctx, func(store Store) error {
		frozen := &Stacks{store: store}
		names, err := frozen.Names(ctx)
		for _, name := range names {
			deployment, err := frozen.Export(ctx, name)
			if err != nil {
				return err
			}
			if deployment == nil {
				continue // its object was deleted just now
			}
			if err := each(name, deployment); err != nil {
				return err
			}
		}
		return err
	})
}

// Import replaces a stack's state. It is for the holder of the stack's lock.
func (s *Stacks) Import(ctx context.Context, name string, deployment *apitype.UntypedDeployment) error {
	latest, err := stack.UnmarshalUntypedDeployment(ctx, deployment)
	if err != nil {
		return fmt.Errorf("not a deployment: %w", explainNewer(err, deployment.Version, deployment.Deployment))
	}
	for _, resource := range latest.Resources {
		if of := resource.URN.Stack().String(); of != name {
			return fmt.Errorf("the deployment is of the stack %s, not of %s", of, name)
		}
	}
	if err := snapshot.VerifyIntegrity(latest); err != nil {
		return fmt.Errorf("not a valid deployment: %w", err)
	}
	checkpoint, err := stack.MarshalUntypedDeploymentToVersionedCheckpointWithMarshaler(
		compact{}, qualifiedName(name), deployment)
	if err != nil {
		return err
	}
	return s.write(ctx, name, checkpoint)
}
