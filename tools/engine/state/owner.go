package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Beside the folders of the CLI, which looks for stacks in its own alone.
const ownerFile = ".pulumi/kindstack/owner.json"

// Owner says whose a backend is: an operator writes no stacks of another's.
type Owner struct {
	// ID is another one for each claim: who held the backend before sees that it does no more.
	ID string `json:"id"`
	// Cluster is the cluster's name, or its UID.
	Cluster    string `json:"cluster"`
	ClusterUID string `json:"clusterUid"`
	// Namespace of the operator.
	Namespace string    `json:"namespace"`
	Since     time.Time `json:"since"`
}

// NotOwnerError says that a backend has not the owner that an operation was asked for by.
type NotOwnerError struct{ text string }

func (e *NotOwnerError) Error() string { return e.text }

// Owner returns nil for a backend without a record.
func (s *Stacks) Owner(ctx context.Context) (*Owner, error) {
	data, err := s.store.Read(ctx, ownerFile)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	var owner Owner
	if err == nil {
		err = json.Unmarshal(data, &owner)
	}
	if err == nil && owner.ID == "" {
		err = errors.New("it has no id")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read whose the backend is (%s): %w", ownerFile, err)
	}
	return &owner, nil
}

// RefuseOthers returns a NotOwnerError unless the backend's record has this id.
func (s *Stacks) RefuseOthers(ctx context.Context, id string) error {
	owner, err := s.Owner(ctx)
	switch {
	case err != nil:
		return err
	case owner == nil:
		return &NotOwnerError{"the record of the backend's owner is gone"}
	case owner.ID != id:
		return &NotOwnerError{"the backend has another owner: cluster " + owner.Cluster}
	}
	return nil
}

// Claim writes a record where there is none, or in place of the one with the id `replaces`. It returns the record that is
// there then, which is another one when somebody else was first.
func (s *Stacks) Claim(ctx context.Context, owner *Owner, replaces string) (*Owner, error) {
	data, err := compact{}.Marshal(owner)
	if err != nil {
		return nil, err
	}
	if replaces == "" {
		_, err = s.store.Create(ctx, ownerFile, data)
	} else if there, read := s.Owner(ctx); read != nil || there == nil || there.ID != replaces {
		return there, read
	} else {
		err = s.store.Write(ctx, ownerFile, data)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write whose the backend is (%s): %w", ownerFile, err)
	}
	// What is there counts: a server may not know conditions of writes.
	return s.Owner(ctx)
}
