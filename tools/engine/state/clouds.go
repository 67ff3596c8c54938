//go:build clouds

package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	_ "gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/pulumi/pulumi/pkg/v3/authhelpers"
	"github.com/pulumi/pulumi/pkg/v3/secrets"
	"github.com/pulumi/pulumi/pkg/v3/secrets/cloud"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

func newCloudManager(service string) (secrets.Manager, error) {
	return cloud.NewCloudSecretsManager(&workspace.ProjectStack{}, service, false)
}

func cloudManagerOf(kind string, state json.RawMessage) (secrets.Manager, error) {
	if kind != cloud.Type {
		return nil, fmt.Errorf("not known")
	}
	return cloud.NewCloudSecretsManagerFromState(state)
}

// buckets is the store of clouds.
type buckets struct{ bucket *blob.Bucket }

// openBucket opens a bucket as the CLI does (`newDIYBackend`).
func openBucket(ctx context.Context, u *url.URL) (Store, error) {
	opener := blob.DefaultURLMux()
	opened := *u
	switch u.Scheme {
	case "s3":
		opened.RawQuery = s3Parameters(u.Query()).Encode()
	case "gs":
		credentials, err := authhelpers.GoogleCredentialsMux(ctx)
		if err != nil {
			return nil, err
		}
		opener = credentials
	case azureblob.Scheme:
		opener = &blob.URLMux{}
		opener.RegisterBucket(azureblob.Scheme, &azureblob.URLOpener{
			MakeClient:        azureblob.NewDefaultClient,
			ServiceURLOptions: *azureblob.NewDefaultServiceURLOptions(),
		})
	}
	bucket, err := opener.OpenBucketURL(ctx, &opened)
	if err != nil {
		return nil, fmt.Errorf("cannot open the bucket: %w", err)
	}
	if folder := strings.Trim(u.Path, "/"); folder != "" {
		bucket = blob.PrefixedBucket(bucket, folder+"/")
	}
	return buckets{bucket}, nil
}

// s3Parameters translates the parameters of the CLI's documentation to those of the library (`translateLegacyS3Params`).
func s3Parameters(query url.Values) url.Values {
	isPlain := false
	if disabled := query.Get("disableSSL"); disabled != "" {
		isPlain, _ = strconv.ParseBool(disabled)
		query.Del("disableSSL")
		query.Set("disable_https", strconv.FormatBool(isPlain))
	}
	if endpoint := query.Get("endpoint"); endpoint != "" {
		if !strings.Contains(endpoint, "://") {
			scheme := "https://"
			if isPlain {
				scheme = "http://"
			}
			query.Set("endpoint", scheme+endpoint)
		}
		const checksums = "request_checksum_calculation"
		if query.Get(checksums) == "" && os.Getenv("AWS_REQUEST_CHECKSUM_CALCULATION") == "" {
			query.Set(checksums, "when_required")
		}
	}
	return query
}

func (b buckets) Read(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	data, err := b.bucket.ReadAll(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, ErrNotFound
	}
	return data, err
}

func (b buckets) Write(ctx context.Context, key string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return b.bucket.WriteAll(ctx, key, data, nil)
}

func (b buckets) Create(ctx context.Context, key string, data []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := b.bucket.WriteAll(ctx, key, data, &blob.WriterOptions{IfNotExist: true})
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return false, nil
	}
	return err == nil, err
}

func (b buckets) Copy(ctx context.Context, from, to string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := b.bucket.Copy(ctx, to, from, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return ErrNotFound
	}
	return err
}

func (b buckets) Delete(ctx context.Context, keys ...string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var failed error
	for _, key := range keys {
		if err := b.bucket.Delete(ctx, key); gcerrors.Code(err) != gcerrors.NotFound {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func (b buckets) DeleteAll(ctx context.Context, folders ...string) error {
	for _, folder := range folders {
		files, err := b.List(ctx, folder)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := b.Delete(ctx, folder+"/"+file.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b buckets) List(ctx context.Context, folder string) ([]File, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	start := folder + "/"
	var files []File
	for iterator := b.bucket.List(&blob.ListOptions{Prefix: start, Delimiter: "/"}); ; {
		object, err := iterator.Next(ctx)
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if !object.IsDir {
			files = append(files, File{strings.TrimPrefix(object.Key, start), object.Size})
		}
	}
}

func (b buckets) AtOnce(_ context.Context, read func(Store) error) error { return read(b) }
