//go:build clouds

package state

import (
	"encoding/json"
	"fmt"

	"github.com/pulumi/pulumi/pkg/v3/secrets"
	"github.com/pulumi/pulumi/pkg/v3/secrets/cloud"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

func newCloudManager(service string) (secrets.Manager, error) {
	return cloud.NewCloudSecretsManager(&workspace.ProjectStack{}, service, false)
}

func cloudManagerOf(kind string, state json.RawMessage) (secrets.Manager, error) {
	if kind != cloud.Type {
		return nil, fmt.Errorf("not known")
	}
	return cloud.NewCloudSecretsManagerFromState(state)
}
