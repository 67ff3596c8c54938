package state

import (
	"context"
	"io"
	"net"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// silentServer takes all connections and never answers a statement.
func silentServer(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		_, _ = server.Read(make([]byte, 1024))
		// The start is over: AuthenticationOk, ReadyForQuery.
		_, _ = server.Write([]byte("R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I"))
		_, _ = io.Copy(io.Discard, server)
	}()
	return client, nil
}

func TestALostConnectionToPostgreSQLIsNotWaitedFor(t *testing.T) {
	for name, ask := range map[string]func(Store) error{
		"reading": func(s Store) error { _, err := s.Read(context.Background(), "a"); return err },
		"writing": func(s Store) error { return s.Write(context.Background(), "a", []byte("b")) },
		"all":     func(s Store) error { return s.AtOnce(context.Background(), func(Store) error { return nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, err := openPostgres(&url.URL{Scheme: "postgres", Host: "lost", RawQuery: "sslmode=disable"}, dialer{dial: silentServer})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if err := ask(store); err == nil || time.Since(began) > 2*answerTimeout {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				_ = store.(*postgresStore).db.Close()
				time.Sleep(2 * answerTimeout) // the driver's attempt to end the statement
			})
		})
	}
}
