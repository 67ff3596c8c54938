package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestTheOldestEntriesOfAHistoryGo(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	stacks, _ := open(t, root, "s")
	folder := filepath.Join(root, historyFolder("a"))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for time := 8; time <= 12; time++ { // 9 is older than 10
		for _, what := range []string{"history.json", "checkpoint.json", "history.json.attrs", "checkpoint.json.attrs"} {
			name := fmt.Sprintf("a-%d.%s", time, what)
			if err := os.WriteFile(filepath.Join(folder, name), make([]byte, 100), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	times := func() string {
		files, _ := stacks.store.List(ctx, historyFolder("a"))
		var kept []string
		for _, file := range files {
			if time, isHistory := strings.CutSuffix(file.Name, ".history.json"); isHistory {
				kept = append(kept, strings.TrimPrefix(time, "a-"))
			}
		}
		return strings.Join(kept, " ")
	}
	for _, step := range []struct {
		entries int
		bytes   int64
		want    string
	}{{4, 1 << 40, "10 11 12 9"}, {4, 500, "11 12"}, {0, 1 << 40, ""}} {
		if err := stacks.cutHistory(ctx, "a", step.entries, step.bytes); err != nil {
			t.Fatal(err)
		}
		if got := times(); got != step.want {
			t.Fatalf("%d entries, %d bytes: %q", step.entries, step.bytes, got)
		}
	}
	if left, err := os.ReadDir(folder); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("something is left: %v, %v", left, err)
	}
}

func TestWhatTheCLIWritesBesideAHistoryIsNoUpdate(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	stacks, _ := open(t, root, "s")
	if err := stacks.Import(ctx, "a", deployment(t, "a", false)); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"update", "refresh"} {
		if err := stacks.Append(ctx, "a", &Entry{UpdateInfo: backend.UpdateInfo{Kind: apitype.UpdateKind(what)}}); err != nil {
			t.Fatal(err)
		}
	}
	kept, _ := stacks.store.List(ctx, historyFolder("a"))
	for _, file := range kept {
		path := filepath.Join(root, historyFolder("a"), file.Name+".attrs")
		if err := os.WriteFile(path, []byte(`{"user.content_type":"text/plain"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := stacks.History(ctx, "a")
	if len(entries) != 2 || err != nil || entries[0].Kind != "refresh" || entries[1].Kind != "update" {
		t.Fatalf("%v, %v", entries, err)
	}
}

func TestAHistoryKeepsTheCheckpointThatAnUpdateLeft(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	stacks, _ := open(t, root, "s")
	if err := stacks.Append(ctx, "a", &Entry{}); !errors.Is(err, ErrNotFound) {
		t.Fatalf("a stack that does not exist: %v", err)
	}
	for _, protect := range []bool{true, false} {
		if err := stacks.Import(ctx, "a", deployment(t, "a", protect)); err != nil {
			t.Fatal(err)
		}
		if err := stacks.Append(ctx, "a", &Entry{}); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(root, historyFolder("a"), "*.checkpoint.json"))
	if len(kept) != 2 || err != nil {
		t.Fatalf("%v, %v", kept, err)
	}
	for i, want := range []bool{true, false} {
		if data, err := os.ReadFile(kept[i]); strings.Contains(string(data), `"protect":true`) != want || err != nil {
			t.Fatalf("%d: %s, %v", i, data, err)
		}
	}
}

func TestHistoriesShareTheVolumeWithThoseOfNewStacks(t *testing.T) {
	ctx := context.Background()
	stacks, _ := open(t, t.TempDir(), "s")
	for _, name := range []string{"a", "b"} {
		if err := stacks.Import(ctx, name, deployment(t, name, false)); err != nil {
			t.Fatal(err)
		}
		if err := stacks.Append(ctx, name, &Entry{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(stacks.sharing.names, " "); got != "a b" {
		t.Fatal(got)
	}
}

func TestAnotherHistoryIsCutOnlyOnceTheSharesAreSmaller(t *testing.T) {
	ctx := context.Background()
	stacks, _ := open(t, t.TempDir(), "s")
	update := func(name string) string {
		stacks.historyShare(ctx, name)
		return strings.Join(stacks.historiesToCut(name), " ")
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := stacks.Import(ctx, name, deployment(t, name, false)); err != nil {
			t.Fatal(err)
		}
	}
	cut := map[string]bool{}
	for range 3 {
		cut[strings.TrimPrefix(update("a"), "a ")] = true
	}
	if len(cut) != 3 {
		t.Fatalf("each is cut once the stacks were counted: %v", cut)
	}
	if got := update("a"); got != "a" {
		t.Fatalf("nothing has changed since: %s", got)
	}
	if err := stacks.Remove(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(stacks.sharing.names, " "); got != "c b" {
		t.Fatalf("after a removal: %s", got)
	}
	if got := update("b"); got != "b" {
		t.Fatalf("the shares are larger: %s", got)
	}
	if got := update("d"); !strings.HasPrefix(got, "d ") {
		t.Fatalf("with a new stack: %s", got)
	}
}

func TestAnUpdateByTheCLIShowsWhatItChanged(t *testing.T) {
	thing := func(name, id, value string) apitype.ResourceV3 {
		urn := resource.URN("urn:pulumi:s::kindstack::pulumi-nodejs:dynamic/test:Thing::" + name)
		outputs := map[string]any{"value": value}
		return apitype.ResourceV3{URN: urn, Type: urn.Type(), Custom: true, ID: resource.ID(id), Outputs: outputs}
	}
	byURN := func(resources ...apitype.ResourceV3) map[string]apitype.ResourceV3 {
		all := map[string]apitype.ResourceV3{}
		for _, one := range resources {
			all[string(one.URN)] = one
		}
		return all
	}
	before := byURN(thing("same", "1", "a"), thing("changed", "1", "a"), thing("moved", "1", "a"), thing("gone", "1", "a"))
	after := byURN(thing("same", "1", "a"), thing("changed", "1", "b"), thing("moved", "2", "a"), thing("new", "1", "a"))
	got := fmt.Sprint(changesBetween(before, after))
	want := "[{update Thing changed []} {delete Thing gone []} {replace Thing moved []} {create Thing new []}]"
	if got != want {
		t.Fatal(got)
	}
}
