package s3

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/host/source"
)

// object is an open object.
type object struct {
	location
	store    *Store
	etag     string // without quotation marks
	identity source.Identity
}

// Name implements source.Source.
func (o *object) Name() string { return o.uri }

// Size implements source.Source.
func (o *object) Size() int64 { return o.identity.Size }

// Identity implements source.Source.
func (o *object) Identity() source.Identity { return o.identity }

// Close implements source.Source. Connections belong to the store's transport.
func (o *object) Close() error { return nil }

// ReadAt implements source.Source.
func (o *object) ReadAt(ctx context.Context, b []byte, off int64) (n int, err error) {
	want, end := source.Clip(b, off, o.Size())
	if len(want) == 0 {
		return 0, end
	}
	var options minio.GetObjectOptions
	if err := options.SetRange(off, off+int64(len(want))-1); err != nil {
		return 0, fmt.Errorf("%s: bytes %d+%d: %w", o.uri, off, len(want), err)
	}
	if err := options.SetMatchETag(o.etag); err != nil {
		return 0, fmt.Errorf("%s: %w", o.uri, err)
	}
	if o.identity.Kind == source.ByVersion {
		options.VersionID = o.identity.Value
	}
	ctx, seen := withExchange(ctx)
	body, _, header, err := o.store.client.GetObject(ctx, o.bucket, o.key, options)
	if err != nil {
		return 0, o.readError(ctx, err, seen, off, len(want))
	}
	defer func() {
		if closed := body.Close(); closed != nil && err == nil {
			n, err = 0, &source.UnreachableError{Name: o.uri, Err: closed}
		}
	}()
	if etag := strings.Trim(header.Get("ETag"), `"`); etag != o.etag {
		return 0, &source.ChangedError{Name: o.uri, Pinned: o.identity}
	}
	if seen.status != http.StatusPartialContent {
		return 0, &source.AnswerError{
			Name: o.uri, Problem: fmt.Sprintf("bytes %d+%d were asked for, status %d came", off, len(want), seen.status),
		}
	}
	if strings.EqualFold(header.Get("Content-Encoding"), uploadEncoding) {
		header.Del("Content-Encoding")
	}
	if err := source.CheckPart(o.uri, header, off, int64(len(want)), o.Size()); err != nil {
		return 0, err
	}
	if n, err = source.ReadPart(ctx, o.uri, io.Reader(body), want, off); err != nil {
		return 0, err
	}
	return n, end
}

// uploadEncoding is the encoding in which clients send an object's parts. Some stores keep it in the metadata of the
// object, although the bytes that they send are not encoded.
const uploadEncoding = "aws-chunked"

// readError is the error of a read that brought no bytes.
func (o *object) readError(ctx context.Context, err error, seen *exchange, off int64, n int) error {
	switch seen.status {
	case http.StatusPreconditionFailed:
		return &source.ChangedError{Name: o.uri, Pinned: o.identity}
	case http.StatusRequestedRangeNotSatisfiable:
		if seen.total >= 0 && seen.total == o.Size() {
			return &source.AnswerError{Name: o.uri, Problem: fmt.Sprintf("it has no bytes %d+%d", off, n)}
		}
		return &source.ChangedError{Name: o.uri, Pinned: o.identity}
	}
	return requestError(ctx, o.uri, err, seen)
}
