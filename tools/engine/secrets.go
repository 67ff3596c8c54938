package main

import (
	"context"
	"maps"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// sealing encrypts outputs where the inputs are secrets, also of a resource that stays the same: the engine would keep its
// outputs as the state has them, which may be from before its inputs were secrets.
type sealing struct{ engine.SnapshotManager }

func (s sealing) BeginMutation(step deploy.Step) (engine.SnapshotMutation, error) {
	mutation, err := s.SnapshotManager.BeginMutation(step)
	if err != nil || step.Op() != deploy.OpSame {
		return mutation, err
	}
	return sealingMutation{mutation}, nil
}

type sealingMutation struct{ engine.SnapshotMutation }

func (m sealingMutation) End(step deploy.Step, successful bool) error {
	if same := step.New(); same != nil {
		same.Lock.Lock()
		same.Outputs = sealed(same.Outputs, same.Inputs)
		same.Lock.Unlock()
	}
	return m.SnapshotMutation.End(step, successful)
}

// sealed copies what it changes: the state before has the same outputs, and may be being written.
func sealed(outs, ins resource.PropertyMap) resource.PropertyMap {
	result, isCopy := outs, false
	for key, in := range ins {
		out, has := outs[key]
		if !has || out.IsSecret() || !in.ContainsSecrets() {
			continue
		}
		if in.IsObject() && out.IsObject() {
			out = resource.NewObjectProperty(sealed(out.ObjectValue(), in.ObjectValue()))
		} else {
			out = resource.MakeSecret(out)
		}
		if !isCopy {
			result, isCopy = maps.Clone(outs), true
		}
		result[key] = out
	}
	return result
}

// hidingDrift is a provider whose resources with secrets have no values in what it says of their drift: those are no inputs,
// so that the engine would not know which are secret.
type hidingDrift struct{ plugin.Provider }

func (p hidingDrift) Create(ctx context.Context, request plugin.CreateRequest) (plugin.CreateResponse, error) {
	answer, err := p.Provider.Create(ctx, request)
	answer.Properties = withoutDrift(answer.Properties)
	return answer, err
}

func (p hidingDrift) Read(ctx context.Context, request plugin.ReadRequest) (plugin.ReadResponse, error) {
	answer, err := p.Provider.Read(ctx, request)
	if answer.Outputs != nil {
		outputs := withoutDrift(*answer.Outputs)
		answer.Outputs = &outputs
	}
	return answer, err
}

func (p hidingDrift) Update(ctx context.Context, request plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	answer, err := p.Provider.Update(ctx, request)
	answer.Properties = withoutDrift(answer.Properties)
	return answer, err
}

func withoutDrift(outputs property.Map) property.Map {
	list := outputs.Get("drift")
	if !list.IsArray() || !outputs.HasSecrets() {
		return outputs
	}
	items := list.AsArray().AsSlice()
	for i, item := range items {
		if !item.IsMap() {
			continue
		}
		values := item.AsMap()
		for _, value := range []string{"wanted", "live"} {
			if _, has := values.GetOk(value); has {
				values = values.Set(value, property.New(hidden))
			}
		}
		items[i] = property.New(values)
	}
	return outputs.Set("drift", property.New(items))
}
