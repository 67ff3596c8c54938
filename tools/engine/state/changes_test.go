package state

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestWhatWasThereBeforeItsStackHadItIsAdopted(t *testing.T) {
	const prefix = "urn:pulumi:s::p::pulumi-nodejs:dynamic/kubernetes:Namespace::"
	after := map[string]apitype.ResourceV3{}
	for name, outputs := range map[string]map[string]any{
		"found": {"created": false}, "made": {"created": true}, "row": {},
	} {
		after[prefix+name] = apitype.ResourceV3{URN: resource.URN(prefix + name), Outputs: outputs}
	}
	want := []string{"adopt", "create", "create"}
	for i, change := range changesBetween(nil, after) {
		if change.Operation != want[i] {
			t.Errorf("%s: %s, not %s", change.Name, change.Operation, want[i])
		}
	}
}
