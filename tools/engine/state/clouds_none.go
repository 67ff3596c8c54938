//go:build !clouds

package state

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/pulumi/pulumi/pkg/v3/secrets"
)

const withoutClouds = "this engine was built without clouds, and cannot %s: unset KINDSTACK_ENGINE, or name the one of the image"

func openBucket(_ context.Context, u *url.URL) (Store, error) {
	return nil, fmt.Errorf(withoutClouds, "open "+u.Scheme+"://")
}

func newCloudManager(service string) (secrets.Manager, error) { return cloudManagerOf(service, nil) }

func cloudManagerOf(kind string, _ json.RawMessage) (secrets.Manager, error) {
	return nil, fmt.Errorf(withoutClouds, fmt.Sprintf("use %q", kind))
}
