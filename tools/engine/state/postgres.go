package state

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"net/url"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/pulumi/pulumi/pkg/v3/backend/diy/postgres"
)

// postgresStore is the store of postgres://, in the CLI's own table. The CLI's bucket overwrites what is to be created once, so
// that two could hold a lock, and asks once more for each file of a list: half as many requests again for each update.
type postgresStore struct {
	db     *sql.DB
	in     querier
	url    *url.URL
	table  string
	prefix string
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

const defaultTable = "pulumi_state"

func openPostgres(u *url.URL, by dialer) (Store, error) {
	connection := *u
	query := connection.Query()
	table := query.Get("table")
	if table == "" {
		table = defaultTable
	}
	query.Del("table")
	if query.Get("connect_timeout") == "" {
		query.Set("connect_timeout", "30")
	}
	connection.RawQuery = query.Encode()
	connector, err := pq.NewConnector(connection.String())
	if err != nil {
		return nil, err
	}
	connector.Dialer(by)
	db := sql.OpenDB(connector)
	connections := max(runtime.GOMAXPROCS(0)*2, 4)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(time.Minute)
	prefix := strings.Trim(u.Path, "/")
	return &postgresStore{db: db, in: db, url: u, table: quoted(table), prefix: prefix}, nil
}

// quoted takes a table's name with or without its schema.
func quoted(table string) string {
	parts := strings.Split(table, ".")
	for i, part := range parts {
		parts[i] = pq.QuoteIdentifier(part)
	}
	return strings.Join(parts, ".")
}

func (p *postgresStore) key(key string) string { return path.Join(p.prefix, key) }

func (p *postgresStore) Read(ctx context.Context, key string) ([]byte, error) {
	var data []byte
	found := false
	err := p.query(ctx, func(rows *sql.Rows) error {
		var encoded string
		found = true
		err := rows.Scan(&encoded)
		if err == nil {
			data, err = base64.StdEncoding.DecodeString(encoded)
		}
		return err
	}, `SELECT data->>'data' FROM `+p.table+` WHERE key = $1`, p.key(key))
	if err == nil && !found {
		err = ErrNotFound
	}
	return data, err
}

func (p *postgresStore) Write(ctx context.Context, key string, data []byte) error {
	_, err := p.insert(ctx, key, data, `UPDATE SET data = excluded.data, updated_at = now()`)
	return err
}

func (p *postgresStore) Create(ctx context.Context, key string, data []byte) (bool, error) {
	return p.insert(ctx, key, data, `NOTHING`)
}

// insert returns whether it wrote.
func (p *postgresStore) insert(ctx context.Context, key string, data []byte, onConflict string) (bool, error) {
	insert := func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		done, err := p.in.ExecContext(ctx, `INSERT INTO `+p.table+` (key, data) VALUES ($1, json_build_object('data', $2::text))
			ON CONFLICT (key) DO `+onConflict, p.key(key), base64.StdEncoding.EncodeToString(data))
		if err != nil {
			return false, err
		}
		written, err := done.RowsAffected()
		return written > 0, err
	}
	isWritten, err := insert()
	if !isMissingTable(err) {
		return isWritten, err
	}
	u := *p.url
	bucket, failed := postgres.NewPostgresBucket(ctx, &u) // it makes the table
	if failed == nil {
		_ = bucket.Close()
	}
	// Where several make it at once, PostgreSQL fails those that come second, though the table is there.
	isWritten, err = insert()
	if failed != nil && isMissingTable(err) {
		err = failed
	}
	return isWritten, err
}

func (p *postgresStore) Copy(ctx context.Context, from, to string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	done, err := p.in.ExecContext(ctx, `INSERT INTO `+p.table+` (key, data) SELECT $2::text, data FROM `+p.table+` WHERE key = $1
		ON CONFLICT (key) DO UPDATE SET data = excluded.data, updated_at = now()`, p.key(from), p.key(to))
	if isMissingTable(err) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	if copied, err := done.RowsAffected(); copied == 0 && err == nil {
		return ErrNotFound
	}
	return nil
}

func (p *postgresStore) Delete(ctx context.Context, keys ...string) error {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = p.key(key)
	}
	return withoutMissingTable(p.exec(ctx, `DELETE FROM `+p.table+` WHERE key = ANY($1)`, pq.Array(all)))
}

func (p *postgresStore) DeleteAll(ctx context.Context, folders ...string) error {
	patterns := make([]string, len(folders))
	for i, folder := range folders {
		patterns[i] = likeAllIn(p.key(folder))
	}
	return withoutMissingTable(p.exec(ctx, `DELETE FROM `+p.table+` WHERE key LIKE ANY($1)`, pq.Array(patterns)))
}

func (p *postgresStore) List(ctx context.Context, folder string) ([]File, error) {
	var files []File
	start := p.key(folder) + "/"
	err := p.query(ctx, func(rows *sql.Rows) error {
		var file File
		if err := rows.Scan(&file.Name, &file.Size); err != nil {
			return err
		}
		file.Name = strings.TrimPrefix(file.Name, start)
		if !strings.Contains(file.Name, "/") {
			files = append(files, file)
		}
		return nil
	}, `SELECT key, coalesce(octet_length(data->>'data') / 4 * 3, 0) FROM `+p.table+` WHERE key LIKE $1 ORDER BY key`,
		likeAllIn(p.key(folder)))
	return files, err
}

func (p *postgresStore) AtOnce(ctx context.Context, read func(Store) error) error {
	tx, err := p.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	inside := *p
	inside.in = tx
	return read(&inside)
}

func (p *postgresStore) query(ctx context.Context, each func(*sql.Rows) error, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	rows, err := p.in.QueryContext(ctx, query, args...)
	if err != nil {
		return withoutMissingTable(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return withoutMissingTable(rows.Err())
}

func (p *postgresStore) exec(ctx context.Context, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := p.in.ExecContext(ctx, query, args...)
	return err
}

func isMissingTable(err error) bool {
	failed, ok := errors.AsType[*pq.Error](err)
	return ok && failed.Code == "42P01"
}

// withoutMissingTable takes a missing table for an empty one: the first write makes it.
func withoutMissingTable(err error) error {
	if isMissingTable(err) {
		return nil
	}
	return err
}

// likeAllIn matches all keys in a folder with LIKE, for which the CLI has made an index.
func likeAllIn(folder string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(folder) + "/%"
}
