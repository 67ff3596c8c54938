// Package state keeps stacks as the CLI's self-managed backends do (pkg/v3/backend/diy, `version: 1`): checkpoints, locks,
// histories. Whatever it asks costs the same beside one stack and beside many.
package state

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// ErrNotFound says that there is no file of a name.
var ErrNotFound = errors.New("not found")

// File is one in a folder.
type File struct {
	Name string
	Size int64
}

// Store holds files under slash-separated keys, each written as a whole.
type Store interface {
	// Read returns ErrNotFound for a file that does not exist.
	Read(ctx context.Context, key string) ([]byte, error)
	Write(ctx context.Context, key string, data []byte) error
	// Create writes a file that does not exist, and returns whether it did: of several at once, one does.
	Create(ctx context.Context, key string, data []byte) (bool, error)
	// Copy returns ErrNotFound for a file that does not exist. Neither file changes with the other one.
	Copy(ctx context.Context, from, to string) error
	// Delete leaves out files that do not exist.
	Delete(ctx context.Context, keys ...string) error
	// DeleteAll deletes all files in folders.
	DeleteAll(ctx context.Context, folders ...string) error
	// List returns the files in a folder; none for a folder that does not exist.
	List(ctx context.Context, folder string) ([]File, error)
	// AtOnce lets read see all files as they are at one moment, if the store can.
	AtOnce(ctx context.Context, read func(Store) error) error
}

// A store that is slow may be; one that does not answer holds up other stacks.
const answerTimeout = 30 * time.Second

// Open opens a backend by the URL that the CLI takes.
func Open(ctx context.Context, backendURL string) (Store, error) {
	u, err := url.Parse(backendURL)
	if err != nil {
		return nil, errors.New("the backend's URL cannot be parsed") // the parser's own error quotes it
	}
	switch u.Scheme {
	case "file":
		return openFiles(u.Path), nil
	case "postgres":
		return openPostgres(u, dialer{dial: (&net.Dialer{}).DialContext})
	case "s3", "gs", "azblob":
		return openBucket(ctx, u)
	}
	return nil, fmt.Errorf("a backend of %q is not known: known are file, postgres, s3, gs, azblob", u.Scheme)
}

// Secrets are what of a backend's URL must not be shown.
func Secrets(backendURL string) []string {
	u, err := url.Parse(backendURL)
	if err != nil {
		return []string{backendURL}
	}
	var secrets []string
	if password, isSet := u.User.Password(); isSet {
		secrets = append(secrets, password, url.QueryEscape(password), url.PathEscape(password))
	}
	for name, values := range u.Query() {
		if name = strings.ToLower(name); strings.Contains(name, "password") || strings.Contains(name, "token") {
			secrets = append(secrets, values...)
		}
	}
	return secrets
}
