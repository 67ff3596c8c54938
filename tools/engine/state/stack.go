package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack"
	"github.com/pulumi/pulumi/pkg/v3/secrets"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/encoding"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Project is the Pulumi project that all of Kindstack's stacks belong to.
const Project = "kindstack"

const (
	metaFile     = ".pulumi/meta.yaml"
	stacksFolder = ".pulumi/stacks/" + Project
)

// Stacks are those of a backend.
type Stacks struct {
	store   Store
	holder  *Holder
	sharing sharing
	secrets secrets.Provider
	hasMeta atomic.Bool
	// By the name of the stack, the locks that this process holds.
	locks sync.Map
	// Ended with the first call of ForgetDestroyed.
	forgetOld sync.Once
}

// New opens the stacks of a backend.
func New(store Store, holder *Holder, provider secrets.Provider) *Stacks {
	return &Stacks{store: store, holder: holder, secrets: provider}
}

func qualifiedName(name string) tokens.QName {
	return tokens.QName("organization/" + Project + "/" + name)
}

func checkpointKey(name string) string { return stacksFolder + "/" + name + ".json" }

// The CLI compresses checkpoints if it is told to.
var compressed = []string{encoding.GZIPExt, encoding.ZSTDExt}

// useCheckpoint uses the file that is there. It returns ErrNotFound when there is none.
func useCheckpoint(name string, use func(key string) error) error {
	err := use(checkpointKey(name))
	for _, extension := range compressed {
		if errors.Is(err, ErrNotFound) {
			err = use(checkpointKey(name) + extension)
		}
	}
	return err
}

func (s *Stacks) read(ctx context.Context, name string) (data []byte, err error) {
	err = useCheckpoint(name, func(key string) error {
		data, err = s.store.Read(ctx, key)
		return err
	})
	return data, err
}

// checkpoint returns nil for a stack without one.
func (s *Stacks) checkpoint(ctx context.Context, name string) (*apitype.CheckpointV3, error) {
	data, err := s.read(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	var checkpoint *apitype.CheckpointV3
	if err == nil {
		checkpoint, err = unmarshal(data)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the state of the stack %s: %w", name, err)
	}
	return checkpoint, nil
}

func marshalerOf(data []byte) encoding.Marshaler {
	return encoding.Compress(encoding.JSON, encoding.DetectCompression(data))
}

// Load returns a stack's snapshot, and whether there is such a stack, without what an update that was cut off was about to
// create: Pulumi would warn of it until a person looks at it; here the next creation does, as it adopts what is there.
func (s *Stacks) Load(ctx context.Context, name string) (*deploy.Snapshot, bool, error) {
	checkpoint, err := s.checkpoint(ctx, name)
	if checkpoint == nil || checkpoint.Latest == nil || err != nil {
		return nil, checkpoint != nil, err
	}
	checkpoint.Latest.PendingOperations = nil
	removeGuard(checkpoint.Latest)
	if err := verifyOwn(checkpoint.Latest, name); err != nil {
		return nil, true, fmt.Errorf("cannot read the state of the stack %s: %w", name, err)
	}
	snapshot, err := stack.DeserializeCheckpoint(ctx, s.secrets, checkpoint)
	if err == nil && snapshot.VerifyIntegrity() != nil {
		// What an update skips keeps its dependencies, also on what the same update has deleted. As `pulumi state repair` does:
		if _, err = snapshot.Repair(); err == nil {
			err = snapshot.VerifyIntegrity()
		}
	}
	if err != nil {
		return nil, true, fmt.Errorf("cannot read the state of the stack %s: %w", name, err)
	}
	return snapshot, true, nil
}

// verifyOwn refuses the state of another stack, as a file that was copied to a wrong name has: an operation would delete what
// is the other stack's.
func verifyOwn(latest *apitype.DeploymentV3, name string) error {
	for _, resource := range latest.Resources {
		if other := string(resource.URN.Stack()); resource.URN.IsValid() && other != name {
			return fmt.Errorf("it is the state of the stack %s: put the file of this stack back, or restore a backup", other)
		}
	}
	return nil
}

// ForgetPending removes from a state what an update that was cut off was about to create. It is for the holder of the
// stack's lock.
func (s *Stacks) ForgetPending(ctx context.Context, name string) error {
	return s.edit(ctx, name, func(latest *apitype.DeploymentV3) bool {
		isChanged := len(latest.PendingOperations) > 0
		latest.PendingOperations = nil
		return isChanged
	})
}

// edit saves a state that has been changed.
func (s *Stacks) edit(ctx context.Context, name string, change func(latest *apitype.DeploymentV3) bool) error {
	checkpoint, err := s.checkpoint(ctx, name)
	if checkpoint == nil || checkpoint.Latest == nil || err != nil || !change(checkpoint.Latest) {
		return err
	}
	return s.Save(ctx, name, apitype.TypedDeployment{
		Deployment: checkpoint.Latest, Version: apitype.DeploymentSchemaVersionCurrent,
	})
}

// Save replaces a stack's checkpoint.
func (s *Stacks) Save(ctx context.Context, name string, deployment apitype.TypedDeployment) error {
	checkpoint, err := stack.DeploymentV3ToCheckpointWithMarshaler(
		compact{}, qualifiedName(name), deployment.Deployment, deployment.Version, deployment.Features)
	if err != nil {
		return err
	}
	return s.write(ctx, name, checkpoint)
}

func (s *Stacks) write(ctx context.Context, name string, checkpoint *apitype.VersionedCheckpoint) error {
	s.holder.exitIfOver()
	if err := s.checkLock(ctx, name); err != nil {
		return err
	}
	data, err := compact{}.Marshal(checkpoint)
	if err != nil {
		return err
	}
	if err := s.ensureMeta(ctx); err != nil {
		return err
	}
	if err := s.store.Write(ctx, checkpointKey(name), data); err != nil {
		return fmt.Errorf("cannot write the state of the stack %s: %w", name, err)
	}
	return nil
}

// ensureMeta writes what tells the CLI how stacks are kept. Without its text, as a disk that was full may have left it, the
// CLI refuses the whole backend.
func (s *Stacks) ensureMeta(ctx context.Context) error {
	if s.hasMeta.Load() {
		return nil
	}
	meta, err := s.store.Read(ctx, metaFile)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("cannot read the backend: %w", err)
	}
	if len(bytes.TrimSpace(meta)) == 0 {
		if err := s.store.Write(ctx, metaFile, []byte("version: 1\n")); err != nil {
			return fmt.Errorf("cannot write to the backend: %w", err)
		}
	}
	s.hasMeta.Store(true)
	return nil
}

// Names returns the names of all stacks.
func (s *Stacks) Names(ctx context.Context) ([]string, error) {
	files, err := s.store.List(ctx, stacksFolder)
	if err != nil {
		return nil, fmt.Errorf("cannot list the stacks: %w", err)
	}
	names := []string{}
	for _, file := range files {
		name := file.Name
		for _, extension := range compressed {
			name = strings.TrimSuffix(name, extension)
		}
		if name, isStack := strings.CutSuffix(name, ".json"); isStack && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, nil
}

// Unprotect takes the protection from resources of a stack, from all without a URN, and returns from which. It is for the
// holder of the stack's lock.
func (s *Stacks) Unprotect(ctx context.Context, name, urn string) ([]string, error) {
	changed := []string{}
	err := s.edit(ctx, name, func(latest *apitype.DeploymentV3) bool {
		for i := range latest.Resources {
			if resource := &latest.Resources[i]; resource.Protect && (urn == "" || urn == string(resource.URN)) {
				resource.Protect = false
				changed = append(changed, string(resource.URN))
			}
		}
		return len(changed) > 0
	})
	return changed, err
}

// Remove removes a stack's state, history and backups. It is for the holder of the stack's lock.
func (s *Stacks) Remove(ctx context.Context, name string) error {
	if err := s.checkLock(ctx, name); err != nil {
		return err
	}
	key := checkpointKey(name)
	keys := []string{key, key + ".bak", stacksFolder + "/" + name + ".pulumi-tags"}
	for _, extension := range compressed {
		keys = append(keys, key+extension, key+extension+".bak")
	}
	// The checkpoint goes last: as long as it is there, another try removes the rest.
	err := s.store.DeleteAll(ctx, historyFolder(name), ".pulumi/backups/"+Project+"/"+name)
	if err == nil {
		err = s.store.Delete(ctx, keys...)
	}
	if err != nil {
		return fmt.Errorf("cannot remove the stack %s: %w", name, err)
	}
	s.sharing.Lock()
	defer s.sharing.Unlock()
	s.sharing.remove(name)
	return nil
}

// compact writes JSON as the CLI does.
type compact struct{}

func (compact) Marshal(v any) ([]byte, error) {
	buffer := &bytes.Buffer{}
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSpace(buffer.Bytes()), err
}

func (compact) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
