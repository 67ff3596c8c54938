package state

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/pulumi/pulumi/pkg/v3/secrets"
	"github.com/pulumi/pulumi/pkg/v3/secrets/passphrase"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// byPassphrase is a manager of secrets whose key is derived when it is needed: that takes a fifth of a second, and most states
// have no secret.
type byPassphrase struct {
	open func() (secrets.Manager, error)
	// known is the manager's state; nil until a new manager was needed.
	known atomic.Pointer[json.RawMessage]
}

func newByPassphrase(state json.RawMessage, open func() (secrets.Manager, error)) *byPassphrase {
	m := &byPassphrase{}
	m.open = sync.OnceValues(func() (secrets.Manager, error) {
		manager, err := open()
		if err == nil {
			state := manager.State()
			m.known.Store(&state)
		}
		return manager, err
	})
	if state != nil {
		m.known.Store(&state)
	}
	return m
}

// isNew tells that no state names this manager yet: its salt is made with its key.
func (m *byPassphrase) isNew() bool { return m.known.Load() == nil }

func (m *byPassphrase) Type() string { return passphrase.Type }

func (m *byPassphrase) State() json.RawMessage {
	if m.isNew() {
		if _, err := m.open(); err != nil {
			return nil
		}
	}
	return *m.known.Load()
}

func (m *byPassphrase) Encrypter() config.Encrypter { return m }
func (m *byPassphrase) Decrypter() config.Decrypter { return m }

func (m *byPassphrase) EncryptValue(ctx context.Context, plain string) (string, error) {
	return opened(m, func(by secrets.Manager) (string, error) { return by.Encrypter().EncryptValue(ctx, plain) })
}

func (m *byPassphrase) BatchEncrypt(ctx context.Context, plain []string) ([]string, error) {
	return opened(m, func(by secrets.Manager) ([]string, error) { return by.Encrypter().BatchEncrypt(ctx, plain) })
}

func (m *byPassphrase) DecryptValue(ctx context.Context, cipher string) (string, error) {
	return opened(m, func(by secrets.Manager) (string, error) { return by.Decrypter().DecryptValue(ctx, cipher) })
}

func (m *byPassphrase) BatchDecrypt(ctx context.Context, cipher []string) ([]string, error) {
	return opened(m, func(by secrets.Manager) ([]string, error) { return by.Decrypter().BatchDecrypt(ctx, cipher) })
}

func opened[T any](m *byPassphrase, use func(secrets.Manager) (T, error)) (result T, err error) {
	by, err := m.open()
	if err != nil {
		return result, err
	}
	return use(by)
}
