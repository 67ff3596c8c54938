package state

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestAStateOfANewerVersionIsSaidToBeNewer(t *testing.T) {
	ctx := context.Background()
	latest := json.RawMessage(`{"manifest":{"time":"2030-01-01T00:00:00Z","magic":"","version":"v3.999.0"},"new":1}`)
	for name, test := range map[string]struct {
		version  int
		features []string
		want     string
	}{
		"version":  {99, nil, "it was written by a newer version of Pulumi (v3.999.0), with version 99 of"},
		"features": {4, []string{"future"}, "it was written by a newer version of Pulumi (v3.999.0), with the features future"},
	} {
		t.Run(name, func(t *testing.T) {
			stacks, _ := open(t, t.TempDir(), "s")
			written, _ := json.Marshal(map[string]any{
				"version": test.version, "features": test.features, "checkpoint": map[string]any{"latest": latest},
			})
			if err := stacks.store.Write(ctx, checkpointKey("a"), written); err != nil {
				t.Fatal(err)
			}
			if _, _, err := stacks.Load(ctx, "a"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v", err)
			}
			exported, err := stacks.Export(ctx, "a")
			if err != nil || exported.Version != test.version {
				t.Fatalf("a backup takes it as it is: %v, %v", exported, err)
			}
			newer := &apitype.UntypedDeployment{Version: test.version, Features: test.features, Deployment: latest}
			if err := stacks.Import(ctx, "b", newer); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v", err)
			}
		})
	}
}

func TestAStateThatIsTornIsSaidToBeTorn(t *testing.T) {
	stacks, _ := open(t, t.TempDir(), "s")
	if err := stacks.store.Write(context.Background(), checkpointKey("a"), []byte(`{"version":3,"checkp`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := stacks.Load(context.Background(), "a"); err == nil || strings.Contains(err.Error(), "newer") ||
		!strings.Contains(err.Error(), "restore a backup") {
		t.Fatalf("%v", err)
	}
}
