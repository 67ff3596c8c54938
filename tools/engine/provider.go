package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pulumi/pulumi/sdk/v3/go/common/version"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"

	"kindstack.dev/tools/engine/rpc"
)

// providerConn is a connection to the operator's dynamic providers: Pulumi's own provider protocol
// (`pulumirpc.ResourceProvider`), with each message in its JSON form, on the pipe.
type providerConn struct {
	op *operation
	// The URNs of what is deleted before its replacement is made.
	deletedFirst sync.Map
}

var served = map[string]bool{"Check": true, "Diff": true, "Create": true, "Read": true, "Update": true, "Delete": true}

type providerCall struct {
	// ID is the operation's.
	ID      int64           `json:"id"`
	Request json.RawMessage `json:"request"`
}

func (c *providerConn) Invoke(ctx context.Context, fullMethod string, args, reply any, _ ...grpc.CallOption) error {
	method := path.Base(fullMethod)
	switch {
	case method == "GetPluginInfo":
		reply.(*pulumirpc.PluginInfo).Version = version.Version
		return nil
	case method == "Configure" || method == "Cancel":
		return nil
	case !served[method]:
		return status.Error(codes.Unimplemented, method)
	}
	request, err := protojson.Marshal(args.(proto.Message))
	if err != nil {
		return err
	}
	answer, err := c.op.server.conn.Call(ctx, method, providerCall{c.op.id, request})
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(answer, reply.(proto.Message))
	}
	if err != nil {
		c.op.refused.note(err)
		c.noteFailure(args)
		return initError(err)
	}
	if diff, isDiff := reply.(*pulumirpc.DiffResponse); isDiff && diff.GetDeleteBeforeReplace() {
		c.deletedFirst.Store(args.(*pulumirpc.DiffRequest).GetUrn(), true)
	}
	return nil
}

// initError is a provider's failure as the engine takes it: with what the call has made all the same, if it tells.
func initError(err error) error {
	failed := status.New(codes.Unknown, err.Error())
	var answer *rpc.Error
	if !errors.As(err, &answer) || len(answer.Data) == 0 {
		return failed.Err()
	}
	made := &pulumirpc.ErrorResourceInitFailed{}
	if unread := protojson.Unmarshal(answer.Data, made); unread != nil {
		return status.Error(codes.Unknown, fmt.Sprintf("%v; what was made is not recorded: %v", err, unread))
	}
	detailed, unpacked := failed.WithDetails(made)
	if unpacked != nil {
		return status.Error(codes.Unknown, fmt.Sprintf("%v; what was made is not recorded: %v", err, unpacked))
	}
	return detailed.Err()
}

// refusals counts the calls of providers that failed.
type refusals struct {
	// Of those that wait for something else to end, and of all others.
	waiting, failed atomic.Int64
}

func (r *refusals) note(err error) {
	var answer *rpc.Error
	if errors.As(err, &answer) && answer.Kind == "pending" {
		r.waiting.Add(1)
	} else {
		r.failed.Add(1)
	}
}

// noteFailure ends the program's wait for a resource whose predecessor could not be deleted before it is made: with
// ContinueOnError, the engine does not answer for it and waits for the program to end (pulumi/pulumi#16373).
func (c *providerConn) noteFailure(args any) {
	if request, isDelete := args.(*pulumirpc.DeleteRequest); isDelete {
		if _, isFirst := c.deletedFirst.Load(request.GetUrn()); isFirst {
			c.op.pending.abandon(request.GetUrn())
		}
	}
}

func (c *providerConn) NewStream(
	context.Context, *grpc.StreamDesc, string, ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return nil, fmt.Errorf("dynamic providers have no streams")
}
