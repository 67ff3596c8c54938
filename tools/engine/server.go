package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/secrets"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"kindstack.dev/tools/engine/rpc"
	"kindstack.dev/tools/engine/state"
)

// server answers the operator's requests:
//
//	up, preview, destroy, previewDestroy {operation}  → {outcome}, after notifications `event`
//	export {stack}                → {state}, or {state: null}
//	exportAll                     → {}, after a request `stack` for each
//	import {stack, state}         → {}
//	history {stack}               → {entries}, newest first, or {entries: null}
//	names                         → {names} of stacks
//	forget {stacks}               → {}, what tells that these were destroyed
//	unlock {stack}                → {locks}, descriptions of those that were removed, or {locks: null}
//	unprotect {stack, urn?}       → {urns} of resources that were protected
//	owner                         → {owner} of the backend, or {owner: null}
//	claim {record, replaces?}     → {owner} that the backend has then
//	ping                          → {usage}
//
// All but `owner`, `claim` and `ping` take {owner} as well, an id: they are refused unless the backend has the owner with this id
// (state/owner.go).
//
// An error has the kind `locked` when another process has the stack's lock, `foreign` when the backend is not the owner's,
// and `unreadable` when an operation did not begin because the backend did not answer or the state could not be read.
//
// It obeys notifications:
//
//	cancel {id, hard?}   an operation ends after the steps that run; hard: at once
//	allow {ms}           the process ends after so long, unless another one arrives in time
//
// It asks the operator, for the request with the id:
//
//	Check, Diff, Create, Read, Update, Delete {id, request}    a provider, see provider.go
//	Observe {id, request}         what a step would overwrite, see observe.go
//	plugins {id}                  → {address, token} of the host of plugins, see plugin_host.go
//	stack {id, name, state}       → {} when the operator has taken it
//	outputs {id}                  → {outputs} of the stack itself, see outputs.go
//
// and notifies it:
//
//	hello {version, protocol}     when it is ready
//	event {id, event}             an EngineEvent of the Automation API
//	log {message, facts}          for the operator's log
type server struct {
	conn       *rpc.Conn
	stacks     *state.Stacks
	manager    secrets.Manager
	backendURL string
	allow      func(ms int64)
	// The operations that run, by id.
	running sync.Map
	// The names of the stacks that are being written.
	writing sync.Map
}

// params are those of all requests and notifications.
type params struct {
	operationParams
	Owner    string                     `json:"owner"`
	Record   *state.Owner               `json:"record"`
	Replaces string                     `json:"replaces"`
	URN      string                     `json:"urn"`
	State    *apitype.UntypedDeployment `json:"state"`
	Stacks   []string                   `json:"stacks"`
	ID       int64                      `json:"id"`
	Hard     bool                       `json:"hard"`
	Ms       int64                      `json:"ms"`
}

func (s *server) handle(m rpc.Message) {
	var p params
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &p); err != nil {
			message := fmt.Sprintf("%s: %v", m.Method, err)
			if m.ID == 0 {
				s.conn.Log("a notification cannot be read", map[string]any{"reason": message})
				return
			}
			s.conn.Answer(m.ID, nil, &rpc.Error{Message: message})
			return
		}
	}
	switch m.Method {
	case "cancel":
		s.cancel(p.ID, p.Hard)
	case "allow":
		s.allow(p.Ms)
	case "ping":
		s.conn.Answer(m.ID, measure(), nil)
	default:
		op := newOperation(s, m.ID, m.Method, p.operationParams)
		if !s.begin(op) {
			message := fmt.Sprintf("the stack %s is being updated by another request", p.Stack)
			s.conn.Answer(m.ID, nil, &rpc.Error{Kind: "locked", Message: message})
			return
		}
		go func() {
			result, err := s.answer(op, p)
			s.end(op)
			s.conn.Answer(m.ID, result, s.errorOf(err))
		}()
	}
}

func (s *server) answer(op *operation, p params) (answer any, err error) {
	// Pulumi's engine panics where it finds a mistake of its own; other operations go on.
	defer func() {
		if mistake := recover(); mistake != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s\n", mistake, debug.Stack())
			err = fmt.Errorf("the engine has failed: %v", mistake)
		}
	}()
	ctx := context.Background()
	if p.Owner != "" {
		// Before the lock is written: not even that is for another's backend, or into the folder of a volume that is not mounted.
		if err := s.stacks.RefuseOthers(ctx, p.Owner); err != nil {
			return nil, unreadable{err}
		}
	}
	switch op.method {
	case "owner":
		owner, err := s.stacks.Owner(ctx)
		return map[string]any{"owner": owner}, err
	case "claim":
		owner, err := s.stacks.Claim(ctx, p.Record, p.Replaces)
		return map[string]any{"owner": owner}, err
	case "up", "preview", "destroy", "previewDestroy":
		return op.run(ctx)
	case "export":
		exported, err := s.stacks.Export(ctx, p.Stack)
		return map[string]any{"state": exported}, err
	case "exportAll":
		return nil, s.stacks.ExportAll(ctx, func(name string, exported *apitype.UntypedDeployment) error {
			_, err := s.conn.Call(ctx, "stack", map[string]any{"id": op.id, "name": name, "state": exported})
			return err
		})
	case "history":
		entries, err := s.stacks.History(ctx, p.Stack)
		return map[string]any{"entries": entries}, err
	case "names":
		names, err := s.stacks.Names(ctx)
		return map[string]any{"names": names}, err
	case "forget":
		return nil, s.stacks.ForgetDestroyed(ctx, p.Stacks)
	case "unlock":
		locks, err := s.stacks.Unlock(ctx, p.Stack)
		return map[string]any{"locks": locks}, err
	case "import", "unprotect":
		unlock, err := s.stacks.Lock(ctx, p.Stack)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	switch op.method {
	case "import":
		return nil, s.stacks.Import(ctx, p.Stack, p.State)
	case "unprotect":
		urns, err := s.stacks.Unprotect(ctx, p.Stack, p.URN)
		return map[string]any{"urns": urns}, err
	}
	return nil, fmt.Errorf("the request %q is not known", op.method)
}

// begin refuses an operation on a stack that is at work.
func (s *server) begin(op *operation) bool {
	if op.writes() {
		if _, isAtWork := s.writing.LoadOrStore(op.Stack, true); isAtWork {
			return false
		}
	}
	s.running.Store(op.id, op)
	return true
}

func (s *server) end(op *operation) {
	s.running.Delete(op.id)
	if op.writes() {
		s.writing.Delete(op.Stack)
	}
}

func (s *server) cancel(id int64, hard bool) {
	found, runs := s.running.Load(id)
	switch {
	case !runs:
	case hard:
		found.(*operation).terminate()
	default:
		found.(*operation).source.Cancel()
	}
}

// unreadable is why an operation did not begin.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

func (s *server) errorOf(err error) *rpc.Error {
	if err == nil {
		return nil
	}
	failed := &rpc.Error{Message: redacted(err.Error(), s.backendURL)}
	if _, isLocked := errors.AsType[*state.LockedError](err); isLocked {
		failed.Kind = "locked"
	} else if _, isForeign := errors.AsType[*state.NotOwnerError](err); isForeign {
		failed.Kind = "foreign"
	} else if _, isUnreadable := errors.AsType[unreadable](err); isUnreadable {
		failed.Kind = "unreadable"
	}
	return failed
}
