package rpc

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
)

func TestWhatCannotBeEncodedFailsAlone(t *testing.T) {
	out := &bytes.Buffer{}
	conn := New(strings.NewReader(""), out)
	conn.Answer(7, map[string]any{"value": math.NaN()}, nil)
	if got := out.String(); !strings.HasPrefix(got, `{"id":7,"error":{"message":"cannot encode a message: `) {
		t.Fatal(got)
	}
	out.Reset()
	conn.Notify("event", math.Inf(1))
	if _, err := conn.Call(context.Background(), "Create", math.NaN()); err == nil || out.Len() > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	conn.Answer(8, nil, nil)
	if got := out.String(); got != "{\"id\":8,\"result\":{}}\n" {
		t.Fatal(got)
	}
}
