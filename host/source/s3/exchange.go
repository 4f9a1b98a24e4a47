package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/host/source"
)

const (
	// maxDocument bounds the body of an answer that is not an object: a listing of a thousand keys has a megabyte.
	maxDocument = 8 << 20
	// maxExchanges bounds the requests of one listing.
	maxExchanges = 4 * maxKeys / pageKeys
)

// exchange has the parts of the last answer to a request that the client library does not hand on.
type exchange struct {
	status int           // 0 if no answer came
	after  time.Duration // The store asked to wait for this time.
	total  int64         // bytes of the object by Content-Range, -1 if it is not named
	count  int           // requests so far
}

type exchangeKey struct{}

// withExchange returns a context whose requests are noted in an exchange.
func withExchange(ctx context.Context) (context.Context, *exchange) {
	x := &exchange{total: -1}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// errTooMany ends a listing that takes too many requests.
var errTooMany = errors.New("too many requests for one listing")

// guard is a transport that notes the answer to a request, and bounds the bodies that the client library reads
// without a bound.
type guard struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	x, _ := req.Context().Value(exchangeKey{}).(*exchange)
	if x != nil {
		if x.count++; x.count > maxExchanges {
			return nil, errTooMany
		}
		x.status, x.after, x.total = 0, 0, -1
	}
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if x != nil {
		x.status = resp.StatusCode
		x.after = source.ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
		x.total = source.TotalOf(resp.Header)
	}
	if resp.StatusCode != http.StatusPartialContent {
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxDocument}
	}
	return resp, nil
}

// errLongDocument says that an answer is too long to be a document of S3.
var errLongDocument = fmt.Errorf("the answer has more than %d bytes", maxDocument)

// boundedBody is a body whose Read fails after a number of bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongDocument
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// throttlingCodes are codes of S3 that ask for fewer requests, whatever the status.
var throttlingCodes = map[string]bool{
	"SlowDown": true, "Throttling": true, "ThrottlingException": true, "RequestLimitExceeded": true,
	"RequestThrottled": true, "InternalError": true, "ServiceUnavailable": true, "RequestTimeout": true,
	"OperationAborted": true,
}

// requestError turns a failure of the client library into an error of package source.
func requestError(ctx context.Context, uri string, err error, seen *exchange) error {
	var (
		refused minio.ErrorResponse
		wrapped *url.Error
		syntax  *xml.SyntaxError
		lacking *source.UnsupportedError // of the transport
	)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &lacking):
		return lacking
	case errors.Is(err, errTooMany), errors.Is(err, errLongDocument), errors.As(err, &syntax):
		return &source.AnswerError{Name: uri, Problem: err.Error()}
	case errors.As(err, &refused) && seen.status != 0:
		cause := fmt.Errorf("%.40q: %.200q", refused.Code, refused.Message)
		if throttlingCodes[refused.Code] {
			return &source.ThrottledError{Name: uri, Status: seen.status, After: seen.after, Err: cause}
		}
		if typed := source.StatusError(uri, seen.status, seen.after, cause); typed != nil {
			return typed
		}
		return &source.AnswerError{Name: uri, Problem: fmt.Sprintf("status %d, %v", seen.status, cause)}
	case errors.As(err, &refused), seen.count == 0: // the library refused the request
		return fmt.Errorf("%s: %s: want s3://BUCKET/KEY", uri, strings.TrimSpace(err.Error()))
	case errors.As(err, &wrapped):
		return &source.UnreachableError{Name: uri, Err: wrapped.Err}
	case seen.status == 0:
		return &source.UnreachableError{Name: uri, Err: err}
	case seen.status == http.StatusOK:
		return &source.TruncatedError{Name: uri, Err: err} // a document that ended early
	}
	if typed := source.StatusError(uri, seen.status, seen.after, err); typed != nil {
		return typed
	}
	return &source.AnswerError{Name: uri, Problem: fmt.Sprintf("status %d: %.200q", seen.status, err.Error())}
}
