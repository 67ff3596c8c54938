package state

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func isDestroyed(t *testing.T, stacks *Stacks, name, object string) bool {
	t.Helper()
	is, err := stacks.IsDestroyed(context.Background(), name, object)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func TestADestroyedStackIsToldOfToItsObjectUntilThatIsGone(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	stacks, _ := open(t, root, "s")
	if err := stacks.Import(ctx, "a", deployment(t, "a", false)); err != nil {
		t.Fatal(err)
	}
	if isDestroyed(t, stacks, "a", "uid") {
		t.Fatal("a stack that is there counts as destroyed")
	}
	if err := stacks.Destroyed(ctx, "a", "uid"); err != nil {
		t.Fatal(err)
	}
	if !isDestroyed(t, stacks, "a", "uid") || isDestroyed(t, stacks, "a", "successor") || isDestroyed(t, stacks, "b", "uid") {
		t.Fatal("it is told of to its object, and to no one else")
	}
	if names, err := stacks.Names(ctx); len(names) != 0 || err != nil {
		t.Fatalf("it counts as a stack: %v, %v", names, err)
	}
	for range 2 {
		if err := stacks.ForgetDestroyed(ctx, []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
	}
	if isDestroyed(t, stacks, "a", "uid") {
		t.Fatal("it is not forgotten")
	}
	if _, err := os.Stat(filepath.Join(root, destroyedFolder)); err == nil {
		t.Fatal("an empty folder takes an inode")
	}
}

func TestAStackThatIsRemovedWithoutAnObjectIsNotToldOf(t *testing.T) {
	stacks, _ := open(t, t.TempDir(), "s")
	if err := stacks.Destroyed(context.Background(), "a", ""); err != nil {
		t.Fatal(err)
	}
	if isDestroyed(t, stacks, "a", "") {
		t.Fatal("it is told of")
	}
}

func TestWhatWasLeftBehindIsForgottenWhenItIsOld(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	stacks, _ := open(t, root, "s")
	for name, age := range map[string]time.Duration{"old": destroyedLifetime + time.Hour, "new": time.Hour} {
		data, _ := json.Marshal(destroyed{Object: "uid", At: time.Now().Add(-age)})
		if err := stacks.store.Write(ctx, destroyedKey(name), data); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, destroyedKey("torn")), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if isDestroyed(t, stacks, "torn", "uid") {
		t.Fatal("a torn file tells nothing")
	}
	if err := stacks.ForgetDestroyed(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if isDestroyed(t, stacks, "old", "uid") || !isDestroyed(t, stacks, "new", "uid") {
		t.Fatal("only what is old is forgotten")
	}
	files, _ := stacks.store.List(ctx, destroyedFolder)
	if len(files) != 1 {
		t.Fatalf("%v", files)
	}
}
