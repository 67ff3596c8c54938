package state

import (
	"context"
	"net"
	"time"

	"github.com/lib/pq"
)

// dialer makes the driver's connections to PostgreSQL.
type dialer struct {
	pq.Dialer // the driver's interface, of which it calls nothing where there is a DialContext
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &answering{Conn: conn}, nil
}

// answering is a connection that does not wait for ever. When a statement's context ends, the driver asks the server to end
// the statement, and waits on: of a connection that is lost, the system may not tell for a quarter of an hour.
type answering struct {
	net.Conn
	isOpen bool
}

// SetDeadline is called by the driver while it connects, and at the end of that without a time.
func (a *answering) SetDeadline(at time.Time) error {
	a.isOpen = at.IsZero()
	return a.Conn.SetDeadline(at)
}

func (a *answering) Read(data []byte) (int, error) {
	if a.isOpen {
		_ = a.SetReadDeadline(time.Now().Add(answerTimeout))
	}
	return a.Conn.Read(data)
}

func (a *answering) Write(data []byte) (int, error) {
	if a.isOpen {
		_ = a.SetWriteDeadline(time.Now().Add(answerTimeout))
	}
	return a.Conn.Write(data)
}
