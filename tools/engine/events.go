package main

import (
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	apievents "github.com/pulumi/pulumi/pkg/v3/backend/display"
	"github.com/pulumi/pulumi/pkg/v3/display"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"kindstack.dev/tools/engine/state"
)

// collector passes on the engine's events that an operator needs: an `EngineEvent` of the Automation API each.
type collector struct {
	op      *operation
	started time.Time
	events  chan engine.Event
	done    sync.WaitGroup
	changed map[string]state.Change
	// By URN, what a refresh found that is not as it should be.
	drift map[string][]state.FieldDrift
	// The engine told of a step that the operation's plan does not have, or that the operation has not.
	outdated, omitted bool
	// Something else has failed.
	failed bool
	// Of a preview that makes a plan.
	observer *observer
}

func newCollector(op *operation) *collector {
	c := &collector{op: op, started: time.Now(), events: make(chan engine.Event, 64), changed: map[string]state.Change{},
		drift: map[string][]state.FieldDrift{}}
	if op.Plans {
		c.observer = newObserver(op)
	}
	c.done.Go(func() {
		for event := range c.events {
			c.receive(event)
		}
	})
	return c
}

func (c *collector) close() {
	close(c.events)
	c.done.Wait()
}

func (c *collector) receive(event engine.Event) {
	switch payload := event.Payload().(type) {
	case engine.ResourcePreEventPayload:
		if !c.op.isDry() || isScaffolding(payload.Metadata.URN) {
			return
		}
		if c.observer != nil {
			c.observer.observe(payload.Metadata)
		}
	case engine.ResourceOutputsEventPayload:
		if c.op.isDry() || isScaffolding(payload.Metadata.URN) {
			return
		}
		c.note(payload.Metadata)
	case engine.ResourceOperationFailedPayload:
		c.failed = true
	case engine.DiagEventPayload:
		if payload.Severity != diag.Error || isSummary(payload) {
			return
		}
		switch {
		case isViolation(payload.Message):
			c.outdated = true
		case isOmission(payload.Message):
			c.omitted = true
		default:
			c.failed = true
		}
	default:
		return
	}
	converted, err := apievents.ConvertEngineEvent(event, false)
	if err != nil {
		return
	}
	if outputs := converted.ResOutputsEvent; outputs != nil {
		// What was given is in the program, and what was is in the state.
		if outputs.Metadata.New != nil {
			outputs.Metadata.Old, outputs.Metadata.New.Inputs = nil, nil
		}
	}
	if told := converted.DiagnosticEvent; told != nil {
		told.Message = redacted(colors.Never.Colorize(told.Message), c.op.server.backendURL)
	}
	c.op.server.conn.Notify("event", map[string]any{"id": c.op.id, "event": converted})
}

// violates tells whether the operation ended, with this message, because it would have done something else than its plan.
func (c *collector) violates(message string) bool {
	return c.outdated || isViolation(message) || !c.failed && (c.omitted || isOmission(message))
}

// isSummary tells of the engine's own account that an operation failed, which says nothing of why.
func isSummary(payload engine.DiagEventPayload) bool {
	said := strings.TrimSpace(colors.Never.Colorize(payload.Message))
	return payload.URN == "" && slices.Contains([]string{
		"update failed", "preview failed", "destroy failed", "refresh failed", "error: update failed",
	}, strings.TrimSpace(strings.TrimPrefix(said, "error:")))
}

// isScaffolding tells of what every stack has, whatever is in it: the stack itself, and providers.
func isScaffolding(urn resource.URN) bool {
	kind := string(urn.Type())
	return kind == string(resource.RootStackType) || strings.HasPrefix(kind, "pulumi:providers:")
}

// hidden is how the engine shows a secret.
const hidden = "[secret]"

var changes = map[display.StepOp]string{
	deploy.OpCreate: "create", deploy.OpUpdate: "update", deploy.OpDelete: "delete", deploy.OpReplace: "replace",
	deploy.OpCreateReplacement: "replace", deploy.OpDeleteReplaced: "replace",
}

func (c *collector) note(step engine.StepEventMetadata) {
	if step.Op == deploy.OpRefresh && step.New != nil {
		c.drift[string(step.URN)] = driftIn(step.New.Outputs)
	}
	if operation, isChange := changes[step.Op]; isChange {
		token := strings.Split(string(step.URN.Type()), ":")
		change := state.Change{Operation: operation, Type: token[len(token)-1], Name: step.URN.Name()}
		if step.Op == deploy.OpUpdate {
			change.Drift = c.drift[string(step.URN)]
		}
		c.changed[string(step.URN)] = change
	}
}

// driftIn lists what a provider says that is not as it should be.
func driftIn(outputs resource.PropertyMap) []state.FieldDrift {
	list := outputs["drift"]
	if !list.IsArray() {
		return nil
	}
	drift := []state.FieldDrift{}
	for _, item := range list.ArrayValue() {
		told, isObject := item.Mappable().(map[string]any)
		field, isNamed := told["field"].(string)
		if !isObject || !isNamed {
			continue
		}
		by, _ := told["by"].(string)
		drift = append(drift, state.FieldDrift{Field: field, Wanted: told["wanted"], Live: told["live"], By: by})
	}
	return drift
}

// changes are those of resources, in the order of their names.
func (c *collector) changes() []state.Change {
	list := make([]state.Change, 0, len(c.changed))
	for _, change := range c.changed {
		list = append(list, change)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}
