package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter bounds how long a server may make a reader wait before one attempt.
const MaxRetryAfter = time.Minute

// ParseRetryAfter reads the header Retry-After, in seconds or as a date, at most MaxRetryAfter. It returns 0 if
// there is no such header, or if the header is invalid.
func ParseRetryAfter(header string, now time.Time) time.Duration {
	if seconds, ok := parseByteNumber(header); ok {
		return time.Duration(min(seconds, int64(MaxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), MaxRetryAfter)
	}
	return 0
}

// Clip cuts b to the bytes that a source of size bytes has from byte off. end is io.EOF if these are fewer than
// len(b).
func Clip(b []byte, off, size int64) (within []byte, end error) {
	switch {
	case off < 0:
		return nil, fmt.Errorf("read at byte %d: there are no bytes before 0", off)
	case off >= size && len(b) > 0:
		return nil, io.EOF
	case int64(len(b)) > size-off:
		return b[:size-off], io.EOF
	}
	return b, nil
}

// TotalOf returns the size of an object by the header Content-Range of an answer, or -1 if the header does not name
// it.
func TotalOf(header http.Header) int64 {
	if r, ok := parseContentRange(header.Get("Content-Range")); ok {
		return r.total
	}
	return -1
}

// CheckPart checks the headers of an answer to a request for n bytes from byte off of a source of size bytes.
func CheckPart(name string, header http.Header, off, n, size int64) error {
	refuse := func(problem string) error { return &AnswerError{Name: name, Problem: problem} }
	if e := header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refuse(fmt.Sprintf("bytes %d+%d come with the encoding %.40q, which was not asked for", off, n, e))
	}
	text := header.Get("Content-Range")
	got, ok := parseContentRange(text)
	switch {
	case !ok:
		return refuse(fmt.Sprintf("bytes %d+%d come with the Content-Range %.80q", off, n, text))
	case got.first != off || got.last != off+n-1:
		return refuse(fmt.Sprintf("bytes %d+%d were asked for, bytes %d+%d came", off, n, got.first, got.last-got.first+1))
	case got.total >= 0 && got.total != size:
		return refuse(fmt.Sprintf("it has %d bytes by this answer, and %d by the first", got.total, size))
	}
	if text := header.Get("Content-Length"); text != "" && text != strconv.FormatInt(n, 10) {
		if length, ok := parseByteNumber(text); ok && length < n {
			return &TruncatedError{Name: name, Offset: off, Want: n, Got: length}
		}
		return refuse(fmt.Sprintf("bytes %d+%d come with the Content-Length %.40q", off, n, text))
	}
	return nil
}

// ReadPart reads the body of an answer that must have exactly len(b) bytes. A longer body is an error; ReadPart
// reads one byte beyond len(b) to detect it.
func ReadPart(ctx context.Context, name string, body io.Reader, b []byte, off int64) (int, error) {
	n, err := io.ReadFull(body, b)
	if err == nil {
		var one [1]byte
		switch m, err := io.ReadFull(body, one[:]); {
		case m > 0:
			return 0, &TruncatedError{Name: name, Offset: off, Want: int64(len(b)), Got: int64(len(b)) + 1}
		case !errors.Is(err, io.EOF):
			return 0, causeOrError(ctx, &TruncatedError{Name: name, Offset: off, Want: int64(len(b)), Got: int64(n), Err: err})
		}
		return n, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return 0, causeOrError(ctx, &TruncatedError{Name: name, Offset: off, Want: int64(len(b)), Got: int64(n), Err: err})
}

// causeOrError returns the cause of ctx's end if ctx has ended, else err.
func causeOrError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// StatusError returns the error of this package for an HTTP status, or nil if no error corresponds to the status.
// after is the time that the server asked to wait.
func StatusError(name string, status int, after time.Duration, cause error) error {
	switch status {
	case http.StatusNotFound, http.StatusGone:
		return &NotFoundError{Name: name, Err: cause}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return &ForbiddenError{Name: name, Status: status, Err: cause}
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &ThrottledError{Name: name, Status: status, After: after, Err: cause}
	}
	return nil
}
