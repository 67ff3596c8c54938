package state

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

func TestAStateOfAnotherStackIsRefused(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct{ resources, want string }{
		"its own": {`[{"urn":"urn:pulumi:a::kindstack::pulumi:pulumi:Stack::kindstack-a","type":"pulumi:pulumi:Stack"}]`, ""},
		"another's": {
			`[{"urn":"urn:pulumi:b::kindstack::pulumi:pulumi:Stack::kindstack-b","type":"pulumi:pulumi:Stack"}]`,
			"cannot read the state of the stack a: it is the state of the stack b",
		},
		"one resource of another's": {
			`[{"urn":"urn:pulumi:a::kindstack::pulumi:pulumi:Stack::kindstack-a","type":"pulumi:pulumi:Stack"},` +
				`{"urn":"urn:pulumi:c::kindstack::pulumi:pulumi:Stack::kindstack-c","type":"pulumi:pulumi:Stack"}]`,
			"it is the state of the stack c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stacks, _ := open(t, t.TempDir(), "s")
			written, _ := json.Marshal(map[string]any{"version": 3, "checkpoint": map[string]any{"latest": map[string]any{
				"manifest":  map[string]any{"time": "2026-01-01T00:00:00Z", "magic": "", "version": ""},
				"resources": json.RawMessage(test.resources),
			}}})
			if err := stacks.store.Write(ctx, checkpointKey("a"), written); err != nil {
				t.Fatal(err)
			}
			_, exists, err := stacks.Load(ctx, "a")
			if !exists || (err == nil) != (test.want == "") {
				t.Fatalf("%v, %v", exists, err)
			}
			if err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatal(err)
			}
		})
	}
}
