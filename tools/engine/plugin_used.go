package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// usedPlugin is the engine's end of one update's use of a plugin; `pluginUse` is that of the host of plugins.
type usedPlugin struct {
	plugin.Provider
	conn *hostConn
}

// hostConn is a connection to the host of plugins, for one update and one plugin.
type hostConn struct {
	*grpc.ClientConn
	metadata metadata.MD
	update   *operation
}

// Pulumi takes no error from a plugin that is no status.
var errTerminated = status.Error(codes.Canceled, "the update was ended while the plugin was at work")

// usePlugin starts the plugin if it does not run. A host of plugins may end just when it is asked, as it was idle.
func (op *operation) usePlugin(ctx *plugin.Context, of pluginProgram) (*usedPlugin, error) {
	used, err := op.usePluginOnce(ctx, of)
	if status.Code(err) == codes.Unavailable {
		used, err = op.usePluginOnce(ctx, of)
	}
	if err != nil {
		return nil, errors.New(status.Convert(err).Message()) // without the words of gRPC: the user reads it
	}
	return used, nil
}

// usePluginOnce asks the operator where plugins are hosted.
func (op *operation) usePluginOnce(ctx *plugin.Context, of pluginProgram) (*usedPlugin, error) {
	answer, err := op.server.conn.Call(op.life, "plugins", map[string]any{"id": op.id})
	if err != nil {
		return nil, fmt.Errorf("no host of plugins: %w", err)
	}
	var at struct{ Address, Token string }
	if err := json.Unmarshal(answer, &at); err != nil {
		return nil, err
	}
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(
		at.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
	)
	if err != nil {
		return nil, err
	}
	to := &hostConn{conn, metadata.Pairs(tokenKey, at.Token, programKey, string(text)), op}
	client := pulumirpc.NewResourceProviderClient(to)
	if _, err := client.GetPluginInfo(context.Background(), &emptypb.Empty{}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &usedPlugin{plugin.NewProviderWithClient(ctx, client, false), to}, nil
}

// Invoke does not wait for a plugin when the update is to end at once.
func (c *hostConn) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, c.metadata))
	defer cancel()
	defer context.AfterFunc(c.update.life, cancel)()
	err := c.ClientConn.Invoke(ctx, method, request, reply, options...)
	if err != nil && c.update.life.Err() != nil {
		return errTerminated
	}
	return err
}

func (u *usedPlugin) Close() error {
	_ = u.conn.Close() // which has no effect a second time
	return nil
}
