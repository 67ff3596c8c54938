package main

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc/connectivity"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
)

func TestAHostClosesItsConnectionToAProgram(t *testing.T) {
	op := newOperation(&server{}, 1, "up", operationParams{Program: program{Address: "127.0.0.1:1"}})
	sink := diag.DefaultSink(io.Discard, io.Discard, diag.FormatOptions{Color: colors.Never})
	made, err := op.newHost(context.Background(), sink, sink, &plugin.MockHost{})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Error(err)
	}
	if state := made.(*host).program.GetState(); state != connectivity.Shutdown {
		t.Error(state)
	}
}
