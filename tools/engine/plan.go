package main

import (
	"errors"
	"slices"

	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// plan holds an operation to what a preview told. The operator passes it on as it is; secrets in it are encrypted as in a
// state.
//
// An update is held to inputs and operations: what a resource is in the world, providers compare.
type plan struct {
	Update *apitype.DeploymentPlanV1 `json:"update,omitempty"`
	// Destroy has the resources of the state.
	Destroy []string `json:"destroy,omitempty"`
}

func (op *operation) planOf(made *deploy.Plan, snapshot *deploy.Snapshot) (*plan, error) {
	if op.method == "previewDestroy" {
		return &plan{Destroy: resourcesOf(snapshot)}, nil
	}
	if made == nil {
		return nil, errors.New("the engine has made no plan")
	}
	serialized, err := stack.SerializePlan(made, op.server.manager.Encrypter(), false)
	return &plan{Update: &serialized}, err
}

// planOfUpdate returns what the engine is to hold the operation to; nil without a plan, and for a destroy.
func (op *operation) planOfUpdate() (*deploy.Plan, error) {
	switch {
	case op.Plan == nil || op.method == "destroy":
		return nil, nil
	case op.method != "up" || op.Plan.Update == nil:
		return nil, errors.New("the plan is of another operation")
	}
	return stack.DeserializePlan(*op.Plan.Update, op.server.manager.Decrypter())
}

// coversDestroy tells whether the state has exactly the resources that were there when its destroy was previewed.
func (p *plan) coversDestroy(snapshot *deploy.Snapshot) bool {
	return p == nil || slices.Equal(p.Destroy, resourcesOf(snapshot))
}

func resourcesOf(snapshot *deploy.Snapshot) []string {
	list := []string{}
	if snapshot == nil {
		return list
	}
	for _, r := range snapshot.Resources {
		entry := string(r.URN) + " " + string(r.ID)
		if r.Delete {
			entry += " (replaced)"
		}
		list = append(list, entry)
	}
	slices.Sort(list)
	return list
}
