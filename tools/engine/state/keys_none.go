//go:build !clouds

package state

import (
	"encoding/json"
	"fmt"

	"github.com/pulumi/pulumi/pkg/v3/secrets"
)

func newCloudManager(service string) (secrets.Manager, error) { return cloudManagerOf(service, nil) }

func cloudManagerOf(kind string, _ json.RawMessage) (secrets.Manager, error) {
	return nil, fmt.Errorf("this engine was built without clouds, and cannot use %q: "+
		"unset KINDSTACK_ENGINE, or name the one of the image", kind)
}
