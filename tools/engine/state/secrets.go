package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/resource/stack"
	"github.com/pulumi/pulumi/pkg/v3/secrets"
	"github.com/pulumi/pulumi/pkg/v3/secrets/passphrase"
)

// Provider makes the secrets managers that states name.
type Provider struct{}

// OfType makes a manager from what a state says of it.
func (Provider) OfType(_ context.Context, kind string, state json.RawMessage) (secrets.Manager, error) {
	manager, err := managerOf(kind, state)
	if err != nil {
		return nil, fmt.Errorf("secrets provider %q: %w", kind, err)
	}
	return stack.NewBatchingCachingSecretsManager(manager), nil
}

func managerOf(kind string, state json.RawMessage) (secrets.Manager, error) {
	if kind == passphrase.Type {
		return passphrase.NewPromptingPassphraseSecretsManagerFromState(state)
	}
	return cloudManagerOf(kind, state)
}

// kept is the file of a manager: all stacks share one salt, or one key. A new one for each would cost another key derivation,
// or another question to the key service, in every update.
type kept struct {
	// Service is the key service's URL; empty for the passphrase.
	Service string          `json:"service,omitempty"`
	Type    string          `json:"type"`
	State   json.RawMessage `json:"state"`
}

// OpenManager returns what encrypts the secrets of states that are written from now on: what the file says, or a new
// manager, which is kept there.
func OpenManager(file, service string) (secrets.Manager, error) {
	var k kept
	if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &k) == nil && k.Service == service {
		return openKept(k)
	}
	manager, err := newManager(service)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(kept{service, manager.Type(), manager.State()})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file+".tmp", data, 0o600); err != nil {
		return nil, err
	}
	return stack.NewBatchingCachingSecretsManager(manager), os.Rename(file+".tmp", file)
}

func openKept(k kept) (secrets.Manager, error) {
	if k.Type == passphrase.Type {
		var s struct{ Salt string }
		if err := json.Unmarshal(k.State, &s); err != nil {
			return nil, err
		}
		phrase, err := readPassphrase()
		if err != nil {
			return nil, err
		}
		manager, err := passphrase.GetPassphraseSecretsManager(phrase, s.Salt)
		if err != nil {
			return nil, err
		}
		return stack.NewBatchingCachingSecretsManager(manager), nil
	}
	return Provider{}.OfType(context.Background(), k.Type, k.State)
}

func newManager(service string) (secrets.Manager, error) {
	if service != "" {
		return newCloudManager(service)
	}
	phrase, err := readPassphrase()
	if err != nil {
		return nil, err
	}
	_, manager, err := passphrase.NewPassphraseSecretsManager(phrase)
	return manager, err
}

func readPassphrase() (string, error) {
	if phrase, isSet := os.LookupEnv("PULUMI_CONFIG_PASSPHRASE"); isSet {
		return phrase, nil
	}
	file := os.Getenv("PULUMI_CONFIG_PASSPHRASE_FILE")
	if file == "" {
		return "", errors.New("passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE")
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}
