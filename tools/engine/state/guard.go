package state

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Guard is what keeps Pulumi's CLI from deleting what an operator manages: a resource in the saved state that depends on all others, so
// that a destroy deletes it first, and whose provider refuses that. Operations of this engine never see it: each save adds
// it, and each load removes it.
type Guard struct {
	Inputs map[string]any `json:"inputs"`
	// Refusing are the stubs of providers that refuse by themselves. A state with no other resources has no guard.
	Refusing []string `json:"refusing"`
}

const (
	guardType tokens.Type = "pulumi-nodejs:dynamic/kindstack:Guard"
	guardName             = "guard"
	// The provider of all dynamic resources.
	nodejsType tokens.Type = "pulumi:providers:pulumi-nodejs"
	nodejsID   resource.ID = "8f1d2b0e-6f0c-4a55-9a34-2b6c5a3f7d10"
)

// Add returns a deployment with the guard.
func (g *Guard) Add(deployment *apitype.DeploymentV3, stack string) *apitype.DeploymentV3 {
	if g == nil || !slices.ContainsFunc(deployment.Resources, g.protects) {
		return deployment
	}
	urnOf := func(token tokens.Type, name string) resource.URN {
		return resource.NewURN(tokens.QName(stack), Project, "", token, name)
	}
	guarded := *deployment
	guarded.Resources = slices.Clone(deployment.Resources)
	guard := apitype.ResourceV3{
		URN: urnOf(guardType, guardName), Type: guardType, Custom: true, ID: guardName, Inputs: g.Inputs, Outputs: g.Inputs,
	}
	added := map[resource.URN]bool{}
	for _, r := range deployment.Resources {
		switch {
		case r.Type == resource.RootStackType:
			guard.Parent = r.URN
		case r.Type == nodejsType && !r.Delete:
			guard.Provider = referenceTo(r)
		case !providers.IsProviderType(r.Type) && !added[r.URN]:
			added[r.URN] = true
			guard.Dependencies = append(guard.Dependencies, r.URN)
		}
	}
	if guard.Provider == "" {
		provider := apitype.ResourceV3{URN: urnOf(nodejsType, "default"), Type: nodejsType, Custom: true, ID: nodejsID}
		guarded.Resources = append(guarded.Resources, provider)
		guard.Provider = referenceTo(provider)
	}
	guarded.Resources = append(guarded.Resources, guard)
	return &guarded
}

// protects tells of a resource that Pulumi's CLI would delete without asking whether an operator manages it.
func (g *Guard) protects(r apitype.ResourceV3) bool {
	stub, _ := r.Inputs["__provider"].(string)
	return r.Custom && !r.External && !providers.IsProviderType(r.Type) && !slices.Contains(g.Refusing, stub)
}

func referenceTo(provider apitype.ResourceV3) string {
	return string(provider.URN) + "::" + string(provider.ID)
}

// removeGuard removes the guard, and the provider that no other resource has.
func removeGuard(deployment *apitype.DeploymentV3) {
	at := slices.IndexFunc(deployment.Resources, func(r apitype.ResourceV3) bool { return r.Type == guardType })
	if at < 0 {
		return
	}
	provider := deployment.Resources[at].Provider
	deployment.Resources = slices.Delete(deployment.Resources, at, at+1)
	if slices.ContainsFunc(deployment.Resources, func(r apitype.ResourceV3) bool { return r.Provider == provider }) {
		return
	}
	deployment.Resources = slices.DeleteFunc(deployment.Resources, func(r apitype.ResourceV3) bool {
		return r.Type == nodejsType && referenceTo(r) == provider
	})
}
