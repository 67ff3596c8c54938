package state

import (
	"cmp"
	"context"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Change is what an update did to one resource.
type Change struct {
	Operation string `json:"operation"`
	Type      string `json:"type"`
	Name      string `json:"name"`
	// Drift is what the change corrected.
	Drift []FieldDrift `json:"drift,omitempty"`
}

// NewChange makes the change of a resource. A component's type may have two parts, of which Pulumi's `Type.Name` panics.
func NewChange(operation string, urn resource.URN) Change {
	token := string(urn.Type())
	return Change{Operation: operation, Type: token[strings.LastIndexByte(token, ':')+1:], Name: urn.Name()}
}

// SortedChanges are changes in the order of their names.
func SortedChanges(changes iter.Seq[Change]) []Change {
	sorted := slices.AppendSeq([]Change{}, changes)
	slices.SortFunc(sorted, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return sorted
}

// IsScaffolding tells of what a stack has, whatever is in it: the stack itself, providers, and the guard.
func IsScaffolding(urn resource.URN) bool {
	return urn.Type() == resource.RootStackType || providers.IsProviderType(urn.Type()) || urn.Type() == guardType
}

// IsAdopted tells, by its outputs, of what was there before the stack had it.
func IsAdopted(outputs map[string]any) bool { return outputs["created"] == false }

// FieldDrift is a field that was not as it should be, as a provider tells it.
type FieldDrift struct {
	Field  string `json:"field"`
	Wanted any    `json:"wanted"`
	Live   any    `json:"live,omitempty"`
	// By is who had changed it, if that is known.
	By string `json:"by,omitempty"`
}

// addChanges tells of updates by the CLI, which does not write it down, what they changed: by the checkpoints that they and
// those before them left. One whose predecessor's checkpoint is gone stays without, unless it made the stack.
func (s *Stacks) addChanges(ctx context.Context, entries []Entry, checkpoints []string) {
	for i := range entries {
		counts := entries[i].ResourceChanges
		others := counts["update"] + counts["delete"] + counts["replace"]
		isFirst := i+1 == len(entries)
		// The stack itself counts as one that stays the same.
		madeStack := others+counts["same"] == 0
		if entries[i].Changes != nil || counts["create"]+others == 0 || isFirst && !madeStack {
			continue
		}
		before := map[string]apitype.ResourceV3{}
		if !isFirst {
			var err error
			if before, err = s.resourcesIn(ctx, checkpoints[i+1]); err != nil {
				continue
			}
		}
		if after, err := s.resourcesIn(ctx, checkpoints[i]); err == nil {
			entries[i].Changes = changesBetween(before, after)
		}
	}
}

func (s *Stacks) resourcesIn(ctx context.Context, key string) (map[string]apitype.ResourceV3, error) {
	data, err := s.store.Read(ctx, key)
	if err != nil {
		return nil, err
	}
	checkpoint, err := unmarshal(data)
	if err != nil {
		return nil, err
	}
	resources := map[string]apitype.ResourceV3{}
	if checkpoint.Latest == nil {
		return resources, nil
	}
	for _, one := range checkpoint.Latest.Resources {
		if !one.Delete && !IsScaffolding(one.URN) {
			resources[string(one.URN)] = one
		}
	}
	return resources, nil
}

func changesBetween(before, after map[string]apitype.ResourceV3) []Change {
	changes := []Change{}
	for urn, now := range after {
		former, existed := before[urn]
		switch {
		case !existed && IsAdopted(now.Outputs):
			changes = append(changes, NewChange("adopt", now.URN))
		case !existed:
			changes = append(changes, NewChange("create", now.URN))
		case former.ID != now.ID:
			changes = append(changes, NewChange("replace", now.URN))
		case !reflect.DeepEqual(former.Inputs, now.Inputs) || !reflect.DeepEqual(former.Outputs, now.Outputs):
			changes = append(changes, NewChange("update", now.URN))
		}
	}
	for urn, former := range before {
		if _, exists := after[urn]; !exists {
			changes = append(changes, NewChange("delete", former.URN))
		}
	}
	return SortedChanges(slices.Values(changes))
}
