package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
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
	h.plugins.memory, h.plugins.say, h.plugins.idle = memory, h.say, idle
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.address = listener.Addr().String()
	server := grpc.NewServer(
		grpc.StatsHandler(h), grpc.UnknownServiceHandler(h.answer), grpc.MaxRecvMsgSize(maxMessage),
	)
	go func() { _ = server.Serve(listener) }()
	go h.plugins.watch(context.Background())
	go h.sayWhenIdle()
	return h, nil
}

func (h *pluginHost) say(message string, facts map[string]any) {
	h.conn.Notify("log", map[string]any{"message": message, "facts": facts})
}

// sayWhenIdle looks twice, as an update that has just begun may not have come yet.
func (h *pluginHost) sayWhenIdle() {
	wasIdle := false
	for range time.Tick(h.plugins.idle / 2) {
		idle := h.plugins.areNone() && h.connections.Load() == 0
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

// leased is what a connection uses, once it has said what.
type leased struct {
	mutex sync.Mutex
	lease *lease
	ended bool
}

type leasedKey struct{}

func (h *pluginHost) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, leasedKey{}, &leased{})
}

// HandleConn ends the use of a plugin with its connection, and so with the engine, whatever has ended that.
func (h *pluginHost) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, isEnd := s.(*stats.ConnEnd); !isEnd {
		h.connections.Add(1)
		return
	}
	h.connections.Add(-1)
	held := ctx.Value(leasedKey{}).(*leased)
	held.mutex.Lock()
	defer held.mutex.Unlock()
	held.ended = true
	if held.lease != nil {
		held.lease.close()
	}
}

func (h *pluginHost) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (h *pluginHost) HandleRPC(context.Context, stats.RPCStats)                       {}

func (h *pluginHost) answer(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	said, _ := metadata.FromIncomingContext(ctx)
	token := ""
	if tokens := said.Get(tokenKey); len(tokens) > 0 {
		token = tokens[0]
	}
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
	used, err := h.leaseOf(ctx.Value(leasedKey{}).(*leased), said)
	if err == nil {
		err = used.call(ctx, method, request, reply)
	}
	if err != nil {
		return err
	}
	return stream.SendMsg(reply)
}

func (h *pluginHost) leaseOf(held *leased, said metadata.MD) (*lease, error) {
	held.mutex.Lock()
	defer held.mutex.Unlock()
	if held.ended {
		return nil, status.Error(codes.Canceled, "the engine has ended")
	}
	if held.lease != nil {
		return held.lease, nil
	}
	var of pluginProgram
	if texts := said.Get(programKey); len(texts) == 0 || json.Unmarshal([]byte(texts[0]), &of) != nil {
		return nil, errNoPlugin
	}
	var err error
	held.lease, err = h.plugins.lease(of)
	return held.lease, err
}

// messagesOf are new ones for a method of the provider protocol; nil for what is no such method, or a stream.
func messagesOf(fullMethod string) (request, reply proto.Message) {
	services := pulumirpc.File_pulumi_provider_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			name := "/" + string(services.Get(i).FullName()) + "/" + string(m.Name())
			if name == fullMethod && !m.IsStreamingServer() && !m.IsStreamingClient() {
				return messageOf(m.Input()), messageOf(m.Output())
			}
		}
	}
	return nil, nil
}

func messageOf(descriptor protoreflect.MessageDescriptor) proto.Message {
	found, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.FullName())
	if err != nil {
		return nil
	}
	return found.New().Interface()
}
