package main

import (
	"encoding/json"
	"errors"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pulumi/pulumi/pkg/v3/display"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// observer asks the operator's providers what the steps of a preview would overwrite in the world: `Observe` {urn, id,
// operation, olds?, news?}, with the properties as the step itself would have them.
type observer struct {
	op    *operation
	asked sync.WaitGroup
	mutex sync.Mutex
	// What a provider could not tell.
	failed error
}

var written = map[display.StepOp]string{
	deploy.OpCreate: "Create", deploy.OpCreateReplacement: "Create", deploy.OpUpdate: "Update",
	deploy.OpDelete: "Delete", deploy.OpDeleteReplaced: "Delete",
}

type observation struct {
	URN       string          `json:"urn"`
	ID        string          `json:"id,omitempty"`
	Operation string          `json:"operation"`
	Olds      json.RawMessage `json:"olds,omitempty"`
	News      json.RawMessage `json:"news,omitempty"`
}

func (o *observer) observe(step engine.StepEventMetadata) {
	operation, writes := written[step.Op]
	if !writes || string(tokens.Token(step.Type).Package()) != dynamicProviders { // `Type.Package` panics of `a:Component`
		return
	}
	request, err := requestFor(operation, step)
	if err != nil {
		o.fail(err)
		return
	}
	o.asked.Go(func() {
		if _, err := o.op.server.conn.Call(o.op.life, "Observe", providerCall{o.op.id, request}); err != nil {
			o.fail(err)
		}
	})
}

// wait returns when all is answered.
func (o *observer) wait() error {
	o.asked.Wait()
	return o.failed
}

func (o *observer) fail(err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.failed = errors.Join(o.failed, err)
}

func requestFor(operation string, step engine.StepEventMetadata) (json.RawMessage, error) {
	step.LockState()
	defer step.UnlockState()
	seen := observation{URN: string(step.URN), Operation: operation}
	var err error
	if operation != "Create" {
		seen.ID = string(step.Old.State.ID)
		if seen.Olds, err = plain(step.Old.State.Outputs); err != nil {
			return nil, err
		}
	}
	if operation != "Delete" {
		if seen.News, err = plain(step.New.State.Inputs); err != nil {
			return nil, err
		}
	}
	return json.Marshal(seen)
}

// plain has properties as dynamic providers are given them: secrets without their marks.
func plain(properties resource.PropertyMap) (json.RawMessage, error) {
	message, err := plugin.MarshalProperties(properties, plugin.MarshalOptions{KeepUnknowns: true})
	if err != nil {
		return nil, err
	}
	return protojson.Marshal(message)
}
