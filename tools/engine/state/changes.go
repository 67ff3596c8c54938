package state

import (
	"bytes"
	"context"
	"encoding/json"
	"sort"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Change is what an update did to one resource.
type Change struct {
	Operation string `json:"operation"`
	Type      string `json:"type"`
	Name      string `json:"name"`
	// Drift is what the change corrected.
	Drift []FieldDrift `json:"drift,omitempty"`
}

// FieldDrift is a field that was not as it should be, as a provider tells it.
type FieldDrift struct {
	Field  string `json:"field"`
	Wanted any    `json:"wanted"`
	Live   any    `json:"live,omitempty"`
	// By is who had changed it, if that is known.
	By string `json:"by,omitempty"`
}

// addChanges tells of updates by the CLI, which does not write it down, what they changed: by the checkpoints that they and
// those before them left. One whose predecessor's checkpoint is gone stays without.
func (s *Stacks) addChanges(ctx context.Context, entries []Entry, checkpoints []string) {
	for i := range entries {
		counts := entries[i].ResourceChanges
		if entries[i].Changes != nil || i+1 == len(entries) || counts["create"]+counts["update"]+counts["delete"]+counts["replace"] == 0 {
			continue
		}
		before, err := s.resourcesIn(ctx, checkpoints[i+1])
		if err != nil {
			continue
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
	for _, resource := range checkpoint.Latest.Resources {
		token := string(resource.URN.Type())
		if !resource.Delete && token != "pulumi:pulumi:Stack" && !strings.HasPrefix(token, "pulumi:providers:") {
			resources[string(resource.URN)] = resource
		}
	}
	return resources, nil
}

func changesBetween(before, after map[string]apitype.ResourceV3) []Change {
	changes := []Change{}
	note := func(operation string, resource apitype.ResourceV3) {
		token := strings.Split(string(resource.URN.Type()), ":")
		changes = append(changes, Change{Operation: operation, Type: token[len(token)-1], Name: resource.URN.Name()})
	}
	for urn, resource := range after {
		former, existed := before[urn]
		switch {
		case !existed:
			note("create", resource)
		case former.ID != resource.ID:
			note("replace", resource)
		case differ(former.Inputs, resource.Inputs) || differ(former.Outputs, resource.Outputs):
			note("update", resource)
		}
	}
	for urn, resource := range before {
		if _, exists := after[urn]; !exists {
			note("delete", resource)
		}
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Name < changes[j].Name })
	return changes
}

func differ(a, b map[string]any) bool {
	left, _ := json.Marshal(a)
	right, _ := json.Marshal(b)
	return !bytes.Equal(left, right)
}
