// Command pulumi-server runs commands of the Pulumi CLI in one process that stays warm: nine tenths of what a small
// update costs is the start of the CLI.
//
// It links the packages of the CLI's own commands and changes none of them, so each command has the arguments, the
// output and the exit code of the CLI. Requests arrive on standard input and answers leave on standard output, one JSON
// value a line:
//
//	→ {"id":1,"run":{"args":["up","--stack","a"],"backendUrl":"file:///state","savesOnce":true,"events":true}}
//	← {"id":1,"event":{…}}                  an engine event, as `--event-log` writes it
//	← {"id":1,"exit":{"code":6,"stdout":"","stderr":"error: …","error":{"kind":"stackNotFound","message":"…"}}}
//	→ {"id":1,"cancel":"interrupt"}         as one SIGINT would; "terminate" as a second one
//	→ {"ttlMs":10000}                       ends the process unless another one arrives in time
//	→ {"ping":1}
//	← {"pong":1}
//
// It ends when standard input closes and when its time to live is over, at once in both cases: a checkpoint is
// replaced as a whole, so the next update finds what one that was cut off has left.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	cmdBackend "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/backend"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/cmdutil"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
)

// Version is that of the CLI and this program's own revision; set at link time.
var Version = "unknown"

// message is a line of standard input. Exactly one of its fields besides ID is set.
type message struct {
	ID     int64  `json:"id"`
	Run    *run   `json:"run"`
	Cancel string `json:"cancel"`
	TTLMs  int64  `json:"ttlMs"`
	Ping   int64  `json:"ping"`
}

func main() {
	version := flag.Bool("version", false, "print the version")
	ttlMs := flag.Int64("ttl-ms", 0, "end after so long unless told otherwise; 0 for never")
	flag.Parse()
	if *version {
		fmt.Println("pulumi-server", Version)
		return
	}
	if err := serve(*ttlMs); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(ttlMs int64) error {
	answers, err := takeStandardOutput()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP) // requests are cancelled one by one
	slog.SetDefault(slog.New(slog.DiscardHandler))
	cmdutil.DisableInteractive = true
	if err := cmdutil.SetGlobalColorization("never"); err != nil {
		return err
	}
	checkpoints := &checkpointSetting{Store: env.Global}
	env.Global = checkpoints
	backend.CancellationScopes = scopes{checkpoints}
	cmdBackend.DefaultLoginManager = newBackends(cmdBackend.DefaultLoginManager)

	server := newServer(answers)
	end := time.AfterFunc(time.Duration(1<<62), func() { os.Exit(3) })
	live := func(ms int64) {
		if ms > 0 {
			end.Reset(time.Duration(ms) * time.Millisecond)
		}
	}
	live(ttlMs)
	lines := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var m message
		if err := lines.Decode(&m); err == io.EOF {
			os.Exit(0)
		} else if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		switch {
		case m.Run != nil:
			server.start(m.ID, *m.Run)
		case m.Cancel != "":
			server.cancel(m.ID, m.Cancel == "terminate")
		case m.TTLMs > 0:
			live(m.TTLMs)
		case m.Ping > 0:
			answers.send(pong{m.Ping})
		}
	}
}

// takeStandardOutput keeps the process's standard output for answers; commands that print to it print to nowhere.
func takeStandardOutput() (*answers, error) {
	fd, err := syscall.Dup(int(os.Stdout.Fd()))
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	os.Stdout = null
	return &answers{out: os.NewFile(uintptr(fd), "answers")}, nil
}
