package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"

	"kindstack.dev/tools/engine/rpc"
)

// pluginHost is what this program does with --plugins: it has the processes of plugins, which engines use one after
// another, and answers the operator:
//
//	listen                        → {address, token}
//	ping                          → {usage, plugins}
//
// It says `idle` when it has had no process for a while. Engines speak Pulumi's provider protocol to it: a connection is one
// update's use of one plugin, which is named by the metadata of its first call.
type pluginHost struct {
	conn    *rpc.Conn
	plugins *plugins
	allow   func(ms int64)
	address string
	token   string
	// How many engines' connections there are.
	connections atomic.Int32
}

const (
	tokenKey   = "kindstack-token"
	programKey = "kindstack-plugin-bin"
)

func newPluginHost(conn *rpc.Conn, allow func(int64), memory int64, idle time.Duration) (*pluginHost, error) {
	h := &pluginHost{conn: conn, allow: allow, token: rand.Text()}
	h.plugins = newPlugins(h.startPlugin)
	h.plugins.memory, h.plugins.say, h.plugins.idle = memory, conn.Log, idle
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.address = listener.Addr().String()
	server := grpc.NewServer(
		grpc.StatsHandler(h), grpc.UnknownServiceHandler(h.answer), grpc.MaxRecvMsgSize(maxMessage),
	)
	go func() { _ = server.Serve(listener) }()
	go h.plugins.watch()
	go h.sayWhenIdle()
	return h, nil
}

// sayWhenIdle looks twice, as an update that has just begun may not have come yet.
func (h *pluginHost) sayWhenIdle() {
	wasIdle := false
	for range time.Tick(h.plugins.idle / 2) {
		idle := len(h.plugins.list()) == 0 && h.connections.Load() == 0
		if idle && wasIdle {
			h.conn.Notify("idle", struct{}{})
		}
		wasIdle = idle
	}
}

func (h *pluginHost) handle(m rpc.Message) {
	var p params
	_ = json.Unmarshal(m.Params, &p)
	switch m.Method {
	case "allow":
		h.allow(p.Ms)
	case "ping":
		h.conn.Answer(m.ID, struct {
			usage
			Plugins []listedPlugin `json:"plugins"`
		}{measure(), h.plugins.list()}, nil)
	case "listen":
		h.conn.Answer(m.ID, map[string]string{"address": h.address, "token": h.token}, nil)
	default:
		h.conn.Answer(m.ID, nil, &rpc.Error{Message: "a host of plugins does not know the request " + m.Method})
	}
}

// connection is an engine's, for one use of a plugin, once it has said of which.
type connection struct {
	mutex sync.Mutex
	use   *pluginUse
	ended bool
}

type connectionKey struct{}

func (h *pluginHost) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}

// HandleConn ends the use of a plugin with its connection, and so with the engine, whatever has ended that.
func (h *pluginHost) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, isEnd := s.(*stats.ConnEnd); !isEnd {
		h.connections.Add(1)
		return
	}
	h.connections.Add(-1)
	from := ctx.Value(connectionKey{}).(*connection)
	from.mutex.Lock()
	defer from.mutex.Unlock()
	from.ended = true
	if from.use != nil {
		from.use.close()
	}
}

func (h *pluginHost) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (h *pluginHost) HandleRPC(context.Context, stats.RPCStats)                       {}

func (h *pluginHost) answer(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	said, _ := metadata.FromIncomingContext(ctx)
	token := strings.Join(said.Get(tokenKey), "")
	if subtle.ConstantTimeCompare([]byte(token), []byte(h.token)) != 1 {
		return status.Error(codes.Unauthenticated, "this is no engine of the operator's")
	}
	method, _ := grpc.MethodFromServerStream(stream)
	request, reply := messagesOf(method)
	if request == nil {
		return status.Error(codes.Unimplemented, method)
	}
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	use, err := h.useOf(ctx.Value(connectionKey{}).(*connection), said)
	if err == nil {
		err = use.call(ctx, method, request, reply)
	}
	if err != nil {
		return err
	}
	return stream.SendMsg(reply)
}

func (h *pluginHost) useOf(from *connection, said metadata.MD) (use *pluginUse, err error) {
	from.mutex.Lock()
	defer from.mutex.Unlock()
	if from.ended {
		return nil, status.Error(codes.Canceled, "the engine has ended")
	}
	if from.use != nil {
		return from.use, nil
	}
	var of pluginProgram
	if json.Unmarshal([]byte(strings.Join(said.Get(programKey), "")), &of) != nil {
		return nil, errors.New("the first call must name a plugin")
	}
	from.use, err = h.plugins.use(of)
	return from.use, err
}

// messagesOf are new ones for a method of the provider protocol; nil for what is no such method, or a stream.
func messagesOf(fullMethod string) (request, reply proto.Message) {
	service, name := path.Split(strings.TrimPrefix(fullMethod, "/"))
	protocol := pulumirpc.File_pulumi_provider_proto.Services().ByName("ResourceProvider")
	m := protocol.Methods().ByName(protoreflect.Name(name))
	if service != string(protocol.FullName())+"/" || m == nil || m.IsStreamingServer() || m.IsStreamingClient() {
		return nil, nil
	}
	return messageOf(m.Input()), messageOf(m.Output())
}

func messageOf(descriptor protoreflect.MessageDescriptor) proto.Message {
	found, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.FullName())
	if err != nil {
		return nil
	}
	return found.New().Interface()
}
