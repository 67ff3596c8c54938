package state

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func open(t *testing.T, root, session string) (*Stacks, *[]string) {
	t.Helper()
	var warnings []string
	holder := NewHolder(session, func(message string, _ map[string]any) { warnings = append(warnings, message) })
	return New(openFiles(root), holder, Provider{}), &warnings
}

func deployment(t *testing.T, stack string, protect bool) *apitype.UntypedDeployment {
	t.Helper()
	urn := "urn:pulumi:" + stack + "::kindstack::pulumi:pulumi:Stack::kindstack-" + stack
	body, err := json.Marshal(map[string]any{
		"manifest":  map[string]any{"time": time.Now(), "magic": "", "version": ""},
		"resources": []map[string]any{{"urn": urn, "custom": false, "type": "pulumi:pulumi:Stack", "protect": protect}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &apitype.UntypedDeployment{Version: 3, Deployment: body}
}

func TestStatesAreExportedAsTheyWereImported(t *testing.T) {
	ctx := context.Background()
	stacks, _ := open(t, t.TempDir(), "s")
	if exported, err := stacks.Export(ctx, "a"); exported != nil || err != nil {
		t.Fatalf("a stack that does not exist: %v, %v", exported, err)
	}
	if err := stacks.Import(ctx, "a", deployment(t, "a", true)); err != nil {
		t.Fatal(err)
	}
	exported, err := stacks.Export(ctx, "a")
	if err != nil || exported.Version != 3 || !strings.Contains(string(exported.Deployment), "kindstack-a") {
		t.Fatalf("%+v, %v", exported, err)
	}
	if err := stacks.Import(ctx, "b", deployment(t, "a", true)); err == nil || !strings.Contains(err.Error(), "of the stack a") {
		t.Fatalf("the state of another stack was taken: %v", err)
	}
	if urns, err := stacks.Unprotect(ctx, "a", ""); len(urns) != 1 || err != nil {
		t.Fatalf("%v, %v", urns, err)
	}
	if urns, err := stacks.Unprotect(ctx, "a", ""); len(urns) != 0 || err != nil {
		t.Fatalf("%v, %v", urns, err)
	}
	if names, err := stacks.Names(ctx); len(names) != 1 || names[0] != "a" || err != nil {
		t.Fatalf("%v, %v", names, err)
	}
	if err := stacks.Remove(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := stacks.Remove(ctx, "a"); err != nil {
		t.Fatalf("a stack that does not exist: %v", err)
	}
}

func TestAnEmptyMetaFileIsWrittenAgain(t *testing.T) {
	root := t.TempDir()
	stacks, _ := open(t, root, "s")
	meta := filepath.Join(root, metaFile)
	_ = os.MkdirAll(filepath.Dir(meta), 0o700)
	if err := os.WriteFile(meta, nil, 0o600); err != nil { // as a disk that was full may leave it
		t.Fatal(err)
	}
	if err := stacks.Import(context.Background(), "a", deployment(t, "a", false)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(meta); string(text) != "version: 1\n" || err != nil {
		t.Fatalf("%q, %v", text, err)
	}
}

func TestNothingButTheCheckpointIsLeftOfAWrite(t *testing.T) {
	root := t.TempDir()
	stacks, _ := open(t, root, "s")
	if err := stacks.Import(context.Background(), "a", deployment(t, "a", false)); err != nil {
		t.Fatal(err)
	}
	unlock, err := stacks.Lock(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	var files []string
	_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(root, path)
			files = append(files, relative)
		}
		return err
	})
	if got := strings.Join(files, " "); got != ".pulumi/meta.yaml .pulumi/stacks/kindstack/a.json" {
		t.Fatal(got)
	}
	if _, err := os.Stat(filepath.Join(root, ".pulumi/locks/organization/kindstack/a")); err == nil {
		t.Fatal("an empty folder takes an inode")
	}
}

func TestAFailedWriteIsToldInTheSameWordsEachTime(t *testing.T) {
	store := openFiles(t.TempDir())
	if err := os.MkdirAll(store.path("taken/file"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := "write " + store.path("taken") + ": file exists"
	if err := store.Write(context.Background(), "taken", nil); err == nil || err.Error() != want {
		t.Fatalf("%v", err)
	}
}
