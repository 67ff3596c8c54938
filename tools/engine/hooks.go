package main

import (
	"slices"

	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// dropHooks takes the hooks of deletions from a state that is to be destroyed. Hooks are functions of a program, and a destroy
// runs none: the engine would refuse to delete the resources. It returns the names of the hooks.
func dropHooks(snapshot *deploy.Snapshot) []string {
	var dropped []string
	if snapshot == nil {
		return dropped
	}
	for _, state := range snapshot.Resources {
		for _, hooked := range []resource.HookType{resource.BeforeDelete, resource.AfterDelete, resource.OnError} {
			dropped = append(dropped, state.ResourceHooks[hooked]...)
			delete(state.ResourceHooks, hooked)
		}
	}
	slices.Sort(dropped)
	return slices.Compact(dropped)
}
