package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// claimedByOneOf lets claimants race for a backend, and checks that all get the record of the same one.
func claimedByOneOf(t *testing.T, claimants int, open func(claimant int) *Stacks) {
	t.Helper()
	owners := make([]*Owner, claimants)
	var claims sync.WaitGroup
	for i := range claimants {
		claims.Go(func() {
			owner, err := open(i).Claim(context.Background(), &Owner{ID: fmt.Sprint("id-", i), Cluster: "c"}, "")
			if err != nil {
				t.Error(err)
			}
			owners[i] = owner
		})
	}
	claims.Wait()
	for _, owner := range owners {
		if owner == nil || owner.ID != owners[0].ID {
			t.Fatalf("%v and %v", owner, owners[0])
		}
	}
}

func TestOneOfSeveralClaimsAFolder(t *testing.T) {
	for range 20 {
		root := t.TempDir()
		claimedByOneOf(t, 8, func(int) *Stacks {
			stacks, _ := open(t, root, "session")
			return stacks
		})
		if aside, _ := os.ReadDir(filepath.Join(root, asideFolder)); len(aside) != 0 {
			t.Fatalf("%v", aside)
		}
	}
}

func TestAFileIsCreatedOnceOnAVolumeWithoutLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := createExclusively(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := createExclusively(path, []byte("second")); !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "first" {
		t.Fatalf("%s", data)
	}
}

func TestABackendIsWrittenForItsOwnerAlone(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "state")
	stacks, _ := open(t, root, "session")
	isForeign := func(id string) bool {
		_, is := errors.AsType[*NotOwnerError](stacks.RefuseOthers(ctx, id))
		return is
	}
	if !isForeign("one") {
		t.Fatal("a backend without a record is nobody's")
	}
	if _, err := stacks.Claim(ctx, &Owner{ID: "one", Cluster: "a"}, ""); err != nil || isForeign("one") || !isForeign("other") {
		t.Fatal(err)
	}
	if owner, err := stacks.Claim(ctx, &Owner{ID: "other"}, ""); err != nil || owner.ID != "one" {
		t.Fatalf("%v %v", owner, err)
	}
	if owner, err := stacks.Claim(ctx, &Owner{ID: "other"}, "stale"); err != nil || owner.ID != "one" {
		t.Fatalf("%v %v", owner, err)
	}
	if owner, err := stacks.Claim(ctx, &Owner{ID: "other", Cluster: "b"}, "one"); err != nil || owner.ID != "other" || !isForeign("one") {
		t.Fatalf("%v %v", owner, err)
	}
	// A volume that is not mounted: the folder is not made.
	if err := os.Rename(root, root+"-away"); err != nil || !isForeign("other") {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Rename(root+"-away", root); err != nil || isForeign("other") {
		t.Fatal(err)
	}
}

func TestARecordThatCannotBeReadIsNotTakenForNone(t *testing.T) {
	root := t.TempDir()
	stacks, _ := open(t, root, "session")
	for _, content := range []string{"", `{"id":"o`, `{}`} {
		if err := stacks.store.Write(context.Background(), ownerFile, []byte(content)); err != nil {
			t.Fatal(err)
		}
		err := stacks.RefuseOthers(context.Background(), "one")
		if _, isForeign := errors.AsType[*NotOwnerError](err); err == nil || isForeign {
			t.Fatalf("%q: %v", content, err)
		}
		if owner, err := stacks.Claim(context.Background(), &Owner{ID: "one"}, ""); err == nil {
			t.Fatalf("%q: %v", content, owner)
		}
	}
}

func TestTheRecordIsNoStack(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	stacks, _ := open(t, root, "session")
	if _, err := stacks.Claim(ctx, &Owner{ID: "one"}, ""); err != nil {
		t.Fatal(err)
	}
	if names, err := stacks.Names(ctx); err != nil || len(names) != 0 {
		t.Fatalf("%v %v", names, err)
	}
}
