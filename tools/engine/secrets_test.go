package main

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func text(value string) resource.PropertyValue { return resource.NewStringProperty(value) }

func TestSealsOutputsWhereInputsAreSecrets(t *testing.T) {
	object := resource.NewObjectProperty
	before := resource.PropertyMap{"manifest": object(resource.PropertyMap{
		"data": object(resource.PropertyMap{"password": text("canary"), "user": text("anna")}),
		"list": resource.NewArrayProperty([]resource.PropertyValue{text("canary")}),
	}), "uid": text("1")}
	untouched := before.Copy()
	inputs := resource.PropertyMap{"manifest": object(resource.PropertyMap{
		"data": object(resource.PropertyMap{"password": resource.MakeSecret(text("canary")), "user": text("anna")}),
		"list": resource.NewArrayProperty([]resource.PropertyValue{resource.MakeSecret(text("canary"))}),
	}), "absent": resource.MakeSecret(text("canary"))}
	wanted := resource.PropertyMap{"manifest": object(resource.PropertyMap{
		"data": object(resource.PropertyMap{"password": resource.MakeSecret(text("canary")), "user": text("anna")}),
		"list": resource.MakeSecret(resource.NewArrayProperty([]resource.PropertyValue{text("canary")})),
	}), "uid": text("1")}

	if got := sealed(before, inputs); !got.DeepEquals(wanted) {
		t.Errorf("got %v", got)
	}
	if !before.DeepEquals(untouched) || before.ContainsSecrets() {
		t.Errorf("the outputs of the state before were changed: %v", before)
	}
}

func TestHidesDriftOfWhatHasSecrets(t *testing.T) {
	drift := func() resource.PropertyMap {
		item := resource.NewObjectProperty(resource.PropertyMap{"field": text("data.a"), "wanted": text("canary")})
		return resource.PropertyMap{"drift": resource.NewArrayProperty([]resource.PropertyValue{item})}
	}
	plain, secret := drift(), drift()
	secret["value"] = resource.MakeSecret(text("canary"))
	told := func(outputs resource.PropertyMap) resource.PropertyMap {
		return resource.ToResourcePropertyMap(withoutDrift(resource.FromResourcePropertyMap(outputs)))
	}
	plain, secret = told(plain), told(secret)
	if found := driftIn(plain); len(found) != 1 || found[0].Wanted != "canary" {
		t.Errorf("without secrets: %v", found)
	}
	if found := driftIn(secret); len(found) != 1 || found[0].Wanted != hidden || found[0].Live != nil {
		t.Errorf("with secrets: %v", found)
	}
}
