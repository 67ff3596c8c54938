package state

import (
	"bytes"
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
type Provider struct {
	// Own is the manager of the states that this process writes.
	Own secrets.Manager
	// isNew tells that no state names Own yet.
	isNew func() bool
}

// OfType makes a manager from what a state says of it: the process's own where it fits, whose key is derived at most once,
// and not to see that it does not fit.
func (p Provider) OfType(_ context.Context, kind string, state json.RawMessage) (secrets.Manager, error) {
	if p.Own != nil && kind == p.Own.Type() && !p.isNew() && bytes.Equal(state, p.Own.State()) {
		return p.Own, nil
	}
	manager, err := managerOf(kind, state)
	if err != nil {
		return nil, fmt.Errorf("secrets provider %q: %w", kind, err)
	}
	return stack.NewBatchingCachingSecretsManager(manager), nil
}

func managerOf(kind string, state json.RawMessage) (secrets.Manager, error) {
	if kind == passphrase.Type {
		return newByPassphrase(state, func() (secrets.Manager, error) {
			return passphrase.NewPromptingPassphraseSecretsManagerFromState(state)
		}), nil
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

// OpenProvider returns the provider whose own manager encrypts the secrets of states that are written from now on: what the
// file says, or a new one, which is kept there. It may check that the passphrase is the file's.
func OpenProvider(file, service string, check bool) (Provider, error) {
	manager, err := openManager(file, service, check)
	if err != nil {
		return Provider{}, err
	}
	isNew := func() bool { return false }
	if m, ok := manager.(*byPassphrase); ok {
		isNew = m.isNew
	}
	return Provider{stack.NewBatchingCachingSecretsManager(manager), isNew}, nil
}

func openManager(file, service string, check bool) (secrets.Manager, error) {
	var k kept
	data, err := os.ReadFile(file)
	isKept := err == nil && json.Unmarshal(data, &k) == nil && k.Service == service
	switch {
	case isKept && k.Type != passphrase.Type:
		return cloudManagerOf(k.Type, k.State)
	case !isKept && service != "":
		manager, err := newCloudManager(service)
		if err != nil {
			return nil, err
		}
		return manager, keep(file, service, manager)
	}
	phrase, err := readPassphrase()
	if err != nil {
		return nil, err
	}
	if !isKept {
		return newByPassphrase(nil, func() (secrets.Manager, error) {
			_, manager, err := passphrase.NewPassphraseSecretsManager(phrase)
			if err == nil {
				_ = keep(file, service, manager) // without, the next process makes one of its own, which is only slower
			}
			return manager, err
		}), nil
	}
	manager := newByPassphrase(k.State, func() (secrets.Manager, error) {
		var s struct{ Salt string }
		if err := json.Unmarshal(k.State, &s); err != nil {
			return nil, err
		}
		return passphrase.GetPassphraseSecretsManager(phrase, s.Salt)
	})
	if check {
		_, err = manager.open()
	}
	return manager, err
}

func keep(file, service string, manager secrets.Manager) error {
	data, err := json.Marshal(kept{service, manager.Type(), manager.State()})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file+".tmp", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".tmp", file)
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
