package main

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kindstack.dev/tools/engine/rpc"
)

func TestAnUpdateThatIsToEndDoesNotWaitForTheHostOfPlugins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := &server{conn: rpc.New(strings.NewReader(""), io.Discard)}
		op := newOperation(silent, 1, "up", operationParams{})
		time.AfterFunc(time.Second, op.terminate)
		if _, err := op.usePlugin(nil, pluginProgram{Name: "vault"}); err == nil {
			t.Error("there is no such host")
		}
	})
}
