package state

import (
	"reflect"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

func resourceOf(token tokens.Type, name, stub string) apitype.ResourceV3 {
	r := apitype.ResourceV3{
		URN: resource.NewURN("a", Project, "", token, name), Type: token, Custom: token != resource.RootStackType, ID: resource.ID(name),
	}
	if stub != "" {
		r.Inputs = map[string]any{"__provider": stub}
		r.Provider = "urn:pulumi:a::kindstack::pulumi:providers:pulumi-nodejs::default::default"
	}
	return r
}

func TestTheGuardDependsOnAllThatIsNotGuardedOtherwise(t *testing.T) {
	root := resourceOf(resource.RootStackType, "kindstack-a", "")
	nodejs := resourceOf(nodejsType, "default", "")
	keyring := resourceOf("pulumi:providers:keyring", "default", "")
	row := resourceOf("pulumi-nodejs:dynamic/postgres:Row", "row", "row")
	letter := resourceOf("pulumi-nodejs:dynamic/post:Letter", "letter", "letter")
	key := resourceOf("keyring:index:Key", "key", "")
	replaced := key
	replaced.Delete = true
	read := resourceOf("keyring:index:Key", "read", "")
	read.External = true
	guard := &Guard{Inputs: map[string]any{"__provider": "guard"}, Refusing: []string{"row"}}
	for name, test := range map[string]struct {
		has  []apitype.ResourceV3
		adds int
		on   []resource.URN
	}{
		"nothing":                        {nil, 0, nil},
		"rows":                           {[]apitype.ResourceV3{root, nodejs, row}, 0, nil},
		"what is only read":              {[]apitype.ResourceV3{root, keyring, read}, 0, nil},
		"a provider of its own and rows": {[]apitype.ResourceV3{root, nodejs, row, letter}, 1, []resource.URN{row.URN, letter.URN}},
		"a plugin":                       {[]apitype.ResourceV3{root, keyring, replaced, key}, 2, []resource.URN{key.URN}},
	} {
		t.Run(name, func(t *testing.T) {
			before := &apitype.DeploymentV3{Resources: test.has}
			guarded := guard.Add(before, "a")
			if len(before.Resources) != len(test.has) || len(guarded.Resources) != len(test.has)+test.adds {
				t.Fatalf("%+v", guarded.Resources)
			}
			if test.adds > 0 {
				last := guarded.Resources[len(guarded.Resources)-1]
				if last.Type != guardType || last.Provider == "" || last.Parent != root.URN || !reflect.DeepEqual(last.Dependencies, test.on) {
					t.Fatalf("%+v", last)
				}
			}
			removeGuard(guarded)
			if len(guarded.Resources) != len(test.has) || len(test.has) > 0 && !reflect.DeepEqual(guarded.Resources, test.has) {
				t.Fatalf("%+v", guarded.Resources)
			}
		})
	}
	without := &apitype.DeploymentV3{Resources: []apitype.ResourceV3{root, key}}
	if (*Guard)(nil).Add(without, "a") != without {
		t.Fatal("there is a guard that was not asked for")
	}
}
