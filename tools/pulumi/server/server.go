package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/cancel"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/cmd"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/operations"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/stack"
	pkgWorkspace "github.com/pulumi/pulumi/pkg/v3/workspace"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/result"
)

// run asks for one command of the CLI.
type run struct {
	Args []string `json:"args"`
	// The backend, in place of PULUMI_BACKEND_URL.
	BackendURL string `json:"backendUrl"`
	// Save the state at the end instead of after each step, as PULUMI_SKIP_CHECKPOINTS does.
	SavesOnce bool `json:"savesOnce"`
	// Send the engine's events.
	Events bool `json:"events"`
}

type exit struct {
	ID   int64   `json:"id"`
	Exit outcome `json:"exit"`
}

type pong struct {
	Pong int64 `json:"pong"`
}

// outcome is how a command ended.
type outcome struct {
	Code   int      `json:"code"`
	Stdout string   `json:"stdout"`
	Stderr string   `json:"stderr"`
	Error  *failure `json:"error,omitempty"`
}

// failure is a command's own error, apart from the diagnostics, which may quote what users wrote.
type failure struct {
	Kind    string `json:"kind"` // locked, stackNotFound, cancelled, other
	Message string `json:"message"`
}

// answers writes one line at a time.
type answers struct {
	mutex sync.Mutex
	out   io.Writer
}

func (a *answers) send(value any) {
	line := &bytes.Buffer{}
	encoder := json.NewEncoder(line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	a.write(line.Bytes())
}

// sendEvent passes an event on as it is.
func (a *answers) sendEvent(id int64, event []byte) {
	line := fmt.Appendf(nil, `{"id":%d,"event":`, id)
	a.write(append(append(line, event...), "}\n"...))
}

func (a *answers) write(line []byte) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if _, err := a.out.Write(line); err != nil {
		os.Exit(0) // the reader is gone
	}
}

type server struct {
	answers *answers
	mutex   sync.Mutex
	running map[int64]*request
	// The stacks that are being written, by backend and name: requests share a backend, which does not see its own lock.
	writing map[string]bool
}

func newServer(answers *answers) *server {
	return &server{answers: answers, running: map[int64]*request{}, writing: map[string]bool{}}
}

func (s *server) start(id int64, run run) {
	request := &request{run: run}
	stack := request.writes()
	s.mutex.Lock()
	isLocked := stack != "" && s.writing[stack]
	if !isLocked {
		s.running[id] = request
		if stack != "" {
			s.writing[stack] = true
		}
	}
	s.mutex.Unlock()
	if isLocked {
		message := "the stack is being updated by another request"
		s.answers.send(exit{id, outcome{Code: 1, Stderr: message, Error: &failure{"locked", message}}})
		return
	}
	go func() {
		outcome := request.execute(func(event []byte) { s.answers.sendEvent(id, event) })
		s.mutex.Lock()
		delete(s.running, id)
		delete(s.writing, stack)
		s.mutex.Unlock()
		s.answers.send(exit{id, outcome})
	}()
}

func (s *server) cancel(id int64, terminate bool) {
	s.mutex.Lock()
	request := s.running[id]
	s.mutex.Unlock()
	if request != nil {
		request.cancel(terminate)
	}
}

// writes returns the stack that a request takes the lock of; none for one that takes no lock.
func (r *request) writes() string {
	isUpdate := len(r.run.Args) > 0 && slices.Contains([]string{"up", "destroy", "refresh"}, r.run.Args[0])
	flag := slices.Index(r.run.Args, "--stack")
	if !isUpdate || flag < 0 || flag+1 >= len(r.run.Args) || slices.Contains(r.run.Args, "--preview-only") {
		return ""
	}
	return r.run.BackendURL + " " + r.run.Args[flag+1]
}

// execute runs the command as the CLI's own main does.
func (r *request) execute(onEvent func([]byte)) outcome {
	stdout, stderr := &bytes.Buffer{}, &bytes.Buffer{}
	root := newRoot(stdout, stderr)
	args := r.run.Args
	seen := 0
	finish := func() {}
	if r.run.Events {
		path, wait, err := eventPipe(func(event []byte) {
			seen++
			onEvent(event)
		})
		if err != nil {
			return outcome{Code: cmd.ExitCodeError, Error: &failure{"other", err.Error()}}
		}
		args = append(slices.Clone(args), "--event-log", path)
		finish = wait
	}
	root.SetArgs(args)
	err := root.ExecuteContext(context.WithValue(context.Background(), requestKey{}, r))
	finish()
	if err == nil {
		return outcome{Stdout: stdout.String(), Stderr: stderr.String()}
	}
	message := err.Error()
	if !result.IsBail(err) {
		stderr.WriteString("error: " + message + "\n")
	}
	code := cmd.ExitCodeFor(err)
	return outcome{code, stdout.String(), stderr.String(), &failure{kindOf(err, code, seen), message}}
}

// newRoot makes a command tree with flags of its own. Those of the root set variables of the process, so here they are
// accepted and have no effect: the process is never interactive and never in colour.
func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{Use: "pulumi", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().Bool("non-interactive", true, "")
	root.PersistentFlags().String("color", "never", "")
	construction.Lock()
	defer construction.Unlock()
	root.AddCommand(
		operations.NewUpCmd(), operations.NewDestroyCmd(), operations.NewPreviewCmd(), operations.NewRefreshCmd(),
		stack.NewStackCmd(), cancel.NewCancelCmd(pkgWorkspace.Instance),
	)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root
}

// construction is held while a command tree is made: cobra and the commands keep state of the process for it.
var construction sync.Mutex

// kindOf tells what failed from the error's type. A lock has none, but then the command has not begun: there was no event.
func kindOf(err error, code, events int) string {
	switch {
	case code == cmd.ExitStackNotFound:
		return "stackNotFound"
	case code == cmd.ExitCancelled || errors.Is(err, context.Canceled):
		return "cancelled"
	case events == 0 && strings.HasPrefix(err.Error(), "the stack is currently locked by "):
		return "locked"
	}
	return "other"
}
