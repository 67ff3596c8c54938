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
//	up, preview, refresh, destroy, previewDestroy {operation}  → {outcome}, after notifications `event` and provider calls
//	export {stack}                → a deployment, or null
//	exportAll                     → {}, after a request `stack` {name, state} for each
//	import {stack, deployment}    → {}
//	history {stack}               → entries, newest first, or null
//	names                         → names of stacks
//	remove {stack}                → {}
//	unlock {stack}                → descriptions of the locks that were removed
//	unprotect {stack, urn?}       → URNs of resources that were protected
//	ping                          → {usage}
//
// and obeys notifications:
//
//	cancel {id, hard?}   an operation ends after the steps that run; hard: at once
//	allow {ms}           the process ends after so long, unless another one arrives in time
type server struct {
	conn       *rpc.Conn
	stacks     *state.Stacks
	manager    secrets.Manager
	backendURL string
	allow      func(ms int64)

	mutex   sync.Mutex
	running map[int64]*operation
	// The stacks that are being written.
	writing map[string]bool
}

func newServer(
	conn *rpc.Conn, stacks *state.Stacks, manager secrets.Manager, backendURL string, allow func(int64),
) *server {
	return &server{
		conn: conn, stacks: stacks, manager: manager, backendURL: backendURL, allow: allow,
		running: map[int64]*operation{}, writing: map[string]bool{},
	}
}

// params are those of all requests and notifications.
type params struct {
	operationParams
	URN        string                     `json:"urn"`
	Deployment *apitype.UntypedDeployment `json:"deployment"`
	ID         int64                      `json:"id"`
	Hard       bool                       `json:"hard"`
	Ms         int64                      `json:"ms"`
}

func (s *server) handle(m rpc.Message) {
	var p params
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &p); err != nil {
			s.conn.Answer(m.ID, nil, &rpc.Error{Message: fmt.Sprintf("%s: %v", m.Method, err)})
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
	switch op.method {
	case "up", "preview", "refresh", "destroy", "previewDestroy":
		return op.run(ctx)
	case "export":
		return nullable(s.stacks.Export(ctx, p.Stack))
	case "exportAll":
		return nil, s.stacks.ExportAll(ctx, func(name string, deployment *apitype.UntypedDeployment) error {
			_, err := s.conn.Call(ctx, "stack", map[string]any{"id": op.id, "name": name, "state": deployment})
			return err
		})
	case "history":
		entries, err := s.stacks.History(ctx, p.Stack)
		return map[string]any{"entries": entries}, err
	case "names":
		names, err := s.stacks.Names(ctx)
		return map[string]any{"names": append([]string{}, names...)}, err
	case "unlock":
		locks, err := s.stacks.Unlock(ctx, p.Stack)
		return map[string]any{"locks": locks}, err
	case "import", "remove", "unprotect":
		unlock, err := s.stacks.Lock(ctx, p.Stack)
		if err != nil {
			return nil, err
		}
		defer unlock()
		return s.edit(ctx, op.method, p)
	}
	return nil, fmt.Errorf("the request %q is not known", op.method)
}

func (s *server) edit(ctx context.Context, method string, p params) (any, error) {
	switch method {
	case "import":
		if p.Deployment == nil {
			return nil, errors.New("there is no deployment to import")
		}
		return nil, s.stacks.Import(ctx, p.Stack, p.Deployment)
	case "remove":
		return nil, s.stacks.Remove(ctx, p.Stack)
	}
	urns, err := s.stacks.Unprotect(ctx, p.Stack, p.URN)
	return map[string]any{"urns": urns}, err
}

func nullable[T any](value *T, err error) (any, error) { return map[string]*T{"state": value}, err }

// begin refuses an operation on a stack that is at work.
func (s *server) begin(op *operation) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if op.writes() && s.writing[op.Stack] {
		return false
	}
	s.running[op.id] = op
	if op.writes() {
		s.writing[op.Stack] = true
	}
	return true
}

func (s *server) end(op *operation) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.running, op.id)
	if op.writes() {
		delete(s.writing, op.Stack)
	}
}

func (s *server) cancel(id int64, hard bool) {
	s.mutex.Lock()
	op := s.running[id]
	s.mutex.Unlock()
	if op == nil {
		return
	}
	if hard {
		op.source.Terminate()
	} else {
		op.source.Cancel()
	}
}

func (s *server) errorOf(err error) *rpc.Error {
	if err == nil {
		return nil
	}
	failed := &rpc.Error{Message: redacted(err.Error(), s.backendURL)}
	if _, isLocked := errors.AsType[*state.LockedError](err); isLocked {
		failed.Kind = "locked"
	}
	return failed
}
