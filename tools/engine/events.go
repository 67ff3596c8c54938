package main

import (
	"maps"
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
	// How many resources each operation touched, as the engine counts them.
	counts display.ResourceChanges
	// By URN, what changed, and what a refresh found that is not as it should be.
	changed map[resource.URN]state.Change
	// What would have changed, and failed or waits.
	unfinished map[resource.URN]state.Change
	drift      map[resource.URN][]state.FieldDrift
	// What a refresh found gone and the program has not made again.
	gone map[resource.URN]bool
	// The engine told of a step that is not in the operation's plan; of one that is in the plan only.
	outdated, omitted bool
	// Something else has failed: so many steps, and what is no step.
	failed          bool
	failedSteps     int64
	failedOtherwise bool
	// Of a preview that makes a plan.
	observer *observer
}

func newCollector(op *operation) *collector {
	c := &collector{op: op, started: time.Now(), events: make(chan engine.Event, 64),
		changed: map[resource.URN]state.Change{}, unfinished: map[resource.URN]state.Change{}, drift: map[resource.URN][]state.FieldDrift{}, gone: map[resource.URN]bool{}}
	if op.Plans {
		c.observer = &observer{op: op}
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
		if !c.op.isDry() || state.IsScaffolding(payload.Metadata.URN) {
			return
		}
		if c.observer != nil {
			c.observer.observe(payload.Metadata)
		}
	case engine.ResourceOutputsEventPayload:
		if c.op.isDry() || state.IsScaffolding(payload.Metadata.URN) {
			return
		}
		c.note(payload.Metadata)
	case engine.ResourceOperationFailedPayload:
		c.failed = true
		c.failedSteps++
		if step := payload.Metadata; operations[step.Op] != "" && !state.IsScaffolding(step.URN) {
			c.unfinished[step.URN] = state.NewChange(operations[step.Op], step.URN)
		}
	case engine.DiagEventPayload:
		if payload.Severity != diag.Error || isSummary(payload) {
			return
		}
		switch {
		case violation.MatchString(payload.Message):
			c.outdated = true
		case omission.MatchString(payload.Message):
			c.omitted = true
		default:
			c.failed = true
			c.failedOtherwise = c.failedOtherwise || payload.URN == ""
		}
	default:
		return
	}
	converted, err := apievents.ConvertEngineEvent(event, false)
	if err != nil {
		return
	}
	if outputs := converted.ResOutputsEvent; outputs != nil && outputs.Metadata.New != nil {
		// The operator has the inputs from its program, and does not read what was before.
		outputs.Metadata.Old, outputs.Metadata.New.Inputs = nil, nil
	}
	if told := converted.DiagnosticEvent; told != nil {
		told.Message = redacted(colors.Never.Colorize(told.Message), c.op.server.backendURL)
	}
	c.op.server.conn.Notify("event", map[string]any{"id": c.op.id, "event": converted})
}

// violates tells whether the operation ended, with this message, because it would have done something else than its plan.
func (c *collector) violates(message string) bool {
	return c.outdated || violation.MatchString(message) || !c.failed && (c.omitted || omission.MatchString(message))
}

func isSummary(payload engine.DiagEventPayload) bool {
	return payload.URN == "" && summary.MatchString(colors.Never.Colorize(payload.Message))
}

// hidden is how the engine shows a secret.
const hidden = "[secret]"

var operations = map[display.StepOp]string{
	deploy.OpCreate: "create", deploy.OpUpdate: "update", deploy.OpDelete: "delete", deploy.OpReplace: "replace",
	deploy.OpCreateReplacement: "replace", deploy.OpDeleteReplaced: "replace",
}

func (c *collector) note(step engine.StepEventMetadata) {
	if step.Op == deploy.OpRefresh && step.New != nil {
		c.drift[step.URN] = driftIn(step.New.Outputs)
	}
	if step.Op == deploy.OpRefresh && step.New == nil {
		// An earlier update has asked for its deletion, or others have; what makes it again is noted after it.
		c.changed[step.URN] = state.NewChange("delete", step.URN)
		c.gone[step.URN] = true
	}
	if operation, isChange := operations[step.Op]; isChange {
		if step.Op == deploy.OpCreate && step.New != nil && state.IsAdopted(step.New.Outputs.Mappable()) {
			operation = "adopt"
		}
		change := state.NewChange(operation, step.URN)
		if step.Op == deploy.OpUpdate {
			change.Drift = c.drift[step.URN]
		}
		c.changed[step.URN] = change
		delete(c.gone, step.URN)
	}
}

// changedNothing tells that no resource is another, in the real world or in what the state says of it.
func (c *collector) changedNothing() bool {
	for operation := range c.counts {
		if operation != deploy.OpSame {
			return false
		}
	}
	return len(c.changed) == 0
}

// resourceChanges are the engine's counts, with the deletions that a refresh has seen.
func (c *collector) resourceChanges() display.ResourceChanges {
	if len(c.gone) == 0 {
		return c.counts
	}
	counts := maps.Clone(c.counts)
	if counts == nil {
		counts = display.ResourceChanges{}
	}
	counts[deploy.OpDelete] += len(c.gone)
	return counts
}

// driftIn lists what a provider says that is not as it should be.
func driftIn(outputs resource.PropertyMap) []state.FieldDrift {
	list := outputs["drift"]
	if !list.IsArray() {
		return nil
	}
	drift := []state.FieldDrift{}
	for _, item := range list.ArrayValue() {
		told, _ := item.Mappable().(map[string]any)
		if field, isNamed := told["field"].(string); isNamed {
			by, _ := told["by"].(string)
			drift = append(drift, state.FieldDrift{Field: field, Wanted: told["wanted"], Live: told["live"], By: by})
		}
	}
	return drift
}
