package main

import (
	"bytes"
	"strings"
	"testing"

	"kindstack.dev/tools/engine/rpc"
)

func TestANotificationThatCannotBeReadGetsNoAnswer(t *testing.T) {
	out := &bytes.Buffer{}
	s := &server{conn: rpc.New(strings.NewReader(""), out)}
	s.handle(rpc.Message{Method: "cancel", Params: []byte(`{"id":"seven"}`)})
	if got := out.String(); !strings.HasPrefix(got, `{"method":"log","params":{`) {
		t.Fatal(got)
	}
	out.Reset()
	s.handle(rpc.Message{ID: 7, Method: "export", Params: []byte(`{"stack":7}`)})
	if got := out.String(); !strings.HasPrefix(got, `{"id":7,"error":{`) {
		t.Fatal(got)
	}
}
