package state

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/pkg/v3/secrets/passphrase"
)

func TestANewManagerIsMadeOnlyToEncrypt(t *testing.T) {
	ctx := context.Background()
	t.Setenv("PULUMI_CONFIG_PASSPHRASE", "right")
	file := filepath.Join(t.TempDir(), "secrets.json")
	other, err := OpenProvider(filepath.Join(t.TempDir(), "other.json"), "", false)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := OpenProvider(file, "", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.OfType(ctx, passphrase.Type, other.Own.State()); err != nil || !provider.isNew() {
		t.Fatalf("a state of another salt made a key: %v", err)
	}
	cipher, err := provider.Own.Encrypter().EncryptValue(ctx, "secret")
	if err != nil || provider.isNew() {
		t.Fatal(err)
	}
	if own, err := provider.OfType(ctx, passphrase.Type, provider.Own.State()); own != provider.Own || err != nil {
		t.Fatalf("the process's own manager was made again: %v", err)
	}
	next, err := OpenProvider(file, "", true)
	if err != nil || next.isNew() {
		t.Fatalf("the manager was not kept: %v", err)
	}
	if plain, err := next.Own.Decrypter().DecryptValue(ctx, cipher); plain != "secret" || err != nil {
		t.Fatalf("%q, %v", plain, err)
	}
}
