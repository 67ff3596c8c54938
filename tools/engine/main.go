// Command kindstack-engine is Pulumi's engine for a Kindstack operator: it calls `engine.Update` of pkg/v3 itself, and reads
// and writes states as the CLI does. See package rpc for the pipe; server.go lists the requests.
//
// With --plugins, it runs plugins for engines instead: plugin_host.go lists those requests.
//
// It ends when standard input closes and when its time to live is over, at once in both cases: a checkpoint is replaced as
// a whole, so the next update finds what one that was cut off has left.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/cmdutil"

	"kindstack.dev/tools/engine/rpc"
	"kindstack.dev/tools/engine/state"
)

// Version is Pulumi's and this program's own revision; set at link time.
var Version = "unknown"

// Protocol is raised with each change of the requests that an operator of another version would not understand.
const Protocol = 5

type hello struct {
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
}

func main() {
	version := flag.Bool("version", false, "print the version")
	session := flag.String("session", "", "the operator's process, for locks")
	secretsFile := flag.String("secrets", "", "file of the salt, or of the key service's key")
	service := flag.String("secrets-provider", "", "the key service; without one, the passphrase protects states")
	check := flag.Bool("check-passphrase", false, "refuse to start with another passphrase than the file's")
	ttlMs := flag.Int64("ttl-ms", 0, "end after so long unless told otherwise; 0 for never")
	plugins := flag.Bool("plugins", false, "run plugins for engines, in place of operations")
	pluginsMemory := flag.Int64("plugins-memory", 0, "what plugins may have in memory, in bytes; 0 for a share of the limit")
	pluginIdle := flag.Duration("plugin-idle", pluginIdle, "end a plugin after so long without an update")
	flag.Parse()
	if *version {
		fmt.Println("kindstack-engine", Version)
		return
	}
	backendURL := os.Getenv("PULUMI_BACKEND_URL")
	run := func() error { return serve(backendURL, *session, *secretsFile, *service, *check, *ttlMs) }
	if *plugins {
		run = func() error { return servePlugins(*pluginsMemory, *pluginIdle, *ttlMs) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, redacted(err.Error(), backendURL))
		os.Exit(1)
	}
}

func serve(backendURL, session, secretsFile, service string, check bool, ttlMs int64) error {
	conn, err := connect()
	if err != nil {
		return err
	}
	limitMemory()
	holder := state.NewHolder(session, conn.Log)
	allow := endAfter(ttlMs, holder.Allow)
	secrets, err := state.OpenProvider(secretsFile, service, check)
	if err != nil {
		return err
	}
	store, err := state.Open(context.Background(), backendURL)
	if err != nil {
		return fmt.Errorf("cannot open the state's backend: %w", err)
	}
	// Pulumi looks for a project from the working directory upwards, and reads it, in each operation. Ours are in none.
	if err := os.Chdir("/"); err != nil {
		return err
	}
	server := &server{
		conn: conn, stacks: state.New(store, holder, secrets), manager: secrets.Own, backendURL: backendURL, allow: allow,
	}
	conn.Notify("hello", hello{Version, Protocol})
	return conn.Serve(server.handle)
}

func servePlugins(memory int64, idle time.Duration, ttlMs int64) error {
	conn, err := connect()
	if err != nil {
		return err
	}
	if memory == 0 {
		memory = int64(float64(memoryLimit()) * pluginsShare)
	}
	host, err := newPluginHost(conn, endAfter(ttlMs, func(time.Time) {}), memory, idle)
	if err != nil {
		return err
	}
	conn.Notify("hello", hello{Version, Protocol})
	err = conn.Serve(host.handle)
	killPlugins()
	return err
}

// connect takes the pipe to the operator.
func connect() (*rpc.Conn, error) {
	out, err := takeStandardOutput()
	if err != nil {
		return nil, err
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP) // requests are cancelled one by one
	slog.SetDefault(slog.New(slog.DiscardHandler))
	cmdutil.DisableInteractive = true
	return rpc.New(os.Stdin, out), nil
}

// endAfter ends the process after a time, and returns what gives it another one.
func endAfter(ttlMs int64, told func(time.Time)) func(ms int64) {
	end := time.AfterFunc(time.Duration(1<<62), func() { killPlugins(); os.Exit(state.ExitOver) })
	allow := func(ms int64) {
		if ms > 0 {
			told(time.Now().Add(time.Duration(ms) * time.Millisecond))
			end.Reset(time.Duration(ms) * time.Millisecond)
		}
	}
	allow(ttlMs)
	return allow
}

// takeStandardOutput keeps the process's standard output for answers; what prints to it prints to nowhere.
func takeStandardOutput() (io.Writer, error) {
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
	return os.NewFile(uintptr(fd), "answers"), nil
}

// redacted is a message without the backend's passwords: messages end up in conditions, which many people may read.
func redacted(message, backendURL string) string {
	for _, secret := range state.Secrets(backendURL) {
		if secret != "" {
			message = strings.ReplaceAll(message, secret, "***")
		}
	}
	return message
}
