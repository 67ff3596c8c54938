package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/resource/stack"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// explainNewer says of a state that it cannot be read because a newer version wrote it, where that is why.
func explainNewer(err error, version int, latest json.RawMessage) error {
	needs := fmt.Sprintf("version %d of Pulumi's format", version)
	if unsupported, isFeatures := errors.AsType[*stack.ErrDeploymentUnsupportedFeatures](err); isFeatures {
		needs = "the features " + strings.Join(unsupported.Features, ", ")
	} else if version <= stack.DeploymentSchemaVersionLatest {
		return err
	}
	var written struct {
		Manifest apitype.ManifestV1 `json:"manifest"`
	}
	by := "a newer version of Pulumi"
	if json.Unmarshal(latest, &written) == nil && written.Manifest.Version != "" {
		by += " (" + written.Manifest.Version + ")"
	}
	return fmt.Errorf("it was written by %s, with %s; this version reads the versions 1 to %d: "+
		"upgrade Kindstack, or restore a backup from before", by, needs, stack.DeploymentSchemaVersionLatest)
}

// unmarshal reads a checkpoint of any version that is known.
func unmarshal(data []byte) (*apitype.CheckpointV3, error) {
	checkpoint, _, _, err := stack.UnmarshalVersionedCheckpointToLatestCheckpoint(marshalerOf(data), data)
	if err == nil {
		return checkpoint, nil
	}
	versioned, invalid := unmarshalVersioned(data)
	if invalid != nil {
		return nil, fmt.Errorf("it is torn, or no state of Pulumi's (%w): restore a backup; without one, remove it from "+
			"the backend, and decide with `kindstack state resolve`", err)
	}
	return nil, explainNewer(err, versioned.Version, versioned.Checkpoint.Latest)
}

// versionedCheckpoint is a checkpoint whose deployment is left as it is.
type versionedCheckpoint struct {
	apitype.VersionedCheckpoint
	Checkpoint struct {
		Latest json.RawMessage `json:"latest"`
	} `json:"checkpoint"`
}

func unmarshalVersioned(data []byte) (versioned versionedCheckpoint, err error) {
	err = marshalerOf(data).Unmarshal(data, &versioned)
	return versioned, err
}
