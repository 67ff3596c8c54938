// Package rpc is JSON-RPC 2.0 in both directions over one pipe: one JSON value a line, without the version field.
//
//	→ {"id":1,"method":"up","params":{…}}      a request
//	← {"id":7,"method":"Create","params":{…}}  a request of the other side, with an id of its own
//	→ {"id":7,"result":{…}}                    its answer; or {"id":7,"error":{"message":"…"}}
//	← {"method":"event","params":{…}}          a notification: it has no id and gets no answer
//	← {"id":1,"result":{…}}
package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// Error is the other side's answer in place of a result.
type Error struct {
	// Kind tells a program what failed; empty where only people need to know.
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message"`
	// Data is what a program needs besides.
	Data json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Message is one line. A request has a method and an id, a notification a method only, an answer an id only.
type Message struct {
	ID     int64           `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

type outgoing struct {
	ID     int64  `json:"id,omitempty"`
	Method string `json:"method,omitempty"`
	Params any    `json:"params,omitempty"`
	Result any    `json:"result,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// Conn is this process's end of the pipe.
type Conn struct {
	decoder *json.Decoder
	writing sync.Mutex
	out     io.Writer
	lastID  atomic.Int64
	// By id, the channels that are waiting for answers.
	calls sync.Map
}

// New makes a connection. The writer gets whole lines.
func New(in io.Reader, out io.Writer) *Conn {
	return &Conn{decoder: json.NewDecoder(in), out: out}
}

// Serve hands each request and notification to handle, which must not block, until the input ends.
func (c *Conn) Serve(handle func(Message)) error {
	for {
		var m Message
		if err := c.decoder.Decode(&m); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		if m.Method != "" {
			handle(m)
			continue
		}
		if answered, waits := c.calls.LoadAndDelete(m.ID); waits {
			answered.(chan Message) <- m
		}
	}
}

// Call asks the other side, and waits for the answer until the context ends.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	answered := make(chan Message, 1)
	id := c.lastID.Add(1)
	c.calls.Store(id, answered)
	if err := c.send(outgoing{ID: id, Method: method, Params: params}); err != nil {
		c.calls.Delete(id)
		return nil, err
	}
	select {
	case m := <-answered:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-ctx.Done():
		c.calls.Delete(id)
		return nil, context.Cause(ctx)
	}
}

// Notify tells the other side something; what cannot be encoded is left out.
func (c *Conn) Notify(method string, params any) {
	if err := c.send(outgoing{Method: method, Params: params}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// Log gives the operator's log a line.
func (c *Conn) Log(message string, facts map[string]any) {
	c.Notify("log", map[string]any{"message": message, "facts": facts})
}

// Answer answers a request of the other side.
func (c *Conn) Answer(id int64, result any, err *Error) {
	if err != nil {
		result = nil
	} else if result == nil {
		result = struct{}{}
	}
	if unsent := c.send(outgoing{ID: id, Result: result, Error: err}); unsent != nil {
		_ = c.send(outgoing{ID: id, Error: &Error{Message: unsent.Error()}})
	}
}

// send returns an error for what cannot be encoded.
func (c *Conn) send(message outgoing) error {
	line := &bytes.Buffer{}
	encoder := json.NewEncoder(line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		return fmt.Errorf("cannot encode a message: %w", err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(line.Bytes()); err != nil {
		os.Exit(0) // the reader is gone
	}
	return nil
}
