package source

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/leaks"
)

// contents is the bytes that the servers of these tests serve.
const contents = "0123456789abcdefghijklmnopqrstuvwxyz"

// serve starts a server that a test's end stops, and returns the URL of an object.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL + "/data/day_0.parquet"
}

// honest serves contents with an ETag and with ranges.
func honest(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"v1"`)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(contents))
}

// newWeb returns an opener whose connections end with the test.
func newWeb(t *testing.T, roots *x509.CertPool) *Web {
	t.Helper()
	transport := NewTransport(roots)
	t.Cleanup(transport.CloseIdleConnections)
	return NewWeb(transport)
}

// TestSignedURLs: a URL that is signed for GET alone is read with its query in every request. When its signature has
// expired, the error asks for a new signature and does not hold the old one.
func TestSignedURLs(t *testing.T) {
	var ended atomic.Bool
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Query().Get("X-Amz-Signature") != "secret" || ended.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		honest(w, r)
	})
	src, err := newWeb(t, nil).Open(t.Context(), ParseLocation(url+"?X-Amz-Expires=60&X-Amz-Signature=secret"), Identity{})
	require.NoError(t, err)
	b := make([]byte, 4)
	_, err = src.ReadAt(t.Context(), b, 10)
	require.NoError(t, err)
	assert.Equal(t, "abcd", string(b))
	ended.Store(true)
	_, err = src.ReadAt(t.Context(), b, 10)
	var forbidden *ForbiddenError
	require.ErrorAs(t, err, &forbidden)
	assert.ErrorContains(t, err, "sign the URL again")
	assert.NotContains(t, err.Error(), "secret")
	_, err = newWeb(t, nil).Open(t.Context(), ParseLocation(url), Identity{})
	require.ErrorContains(t, err, "give credentials")
}

// TestWebReads reads ranges of an object, also at and beyond its end, and refuses a negative offset.
func TestWebReads(t *testing.T) {
	ctx := context.Background()
	url := serve(t, honest)
	src, err := newWeb(t, nil).Open(ctx, ParseLocation(url+"?signature=secret"), Identity{})
	require.NoError(t, err)
	assert.Equal(t, url, src.Name())
	assert.Equal(t, Identity{Kind: ByETag, Value: `"v1"`, Size: int64(len(contents))}, src.Identity())
	for _, c := range []struct {
		off  int64
		n    int
		want string
		err  error
	}{
		{0, 10, "0123456789", nil}, {30, 6, "uvwxyz", nil}, {30, 7, "uvwxyz", io.EOF}, {36, 1, "", io.EOF},
		{99, 1, "", io.EOF}, {36, 0, "", nil}, {3, 0, "", nil},
	} {
		b := make([]byte, c.n)
		n, err := src.ReadAt(ctx, b, c.off)
		assert.Equal(t, c.want, string(b[:n]))
		assert.Equal(t, c.err, err)
	}
	_, err = src.ReadAt(ctx, make([]byte, 1), -1)
	require.Error(t, err)
	require.NoError(t, src.Close())
}

// TestWebOpens: an object whose first answer lacks what is needed is not opened. Each error has its type and names the
// object without the query.
func TestWebOpens(t *testing.T) {
	part := func(w http.ResponseWriter, etag, contentRange string) {
		if etag != "" {
			w.Header().Set("ETag", etag)
		}
		w.Header().Set("Content-Range", contentRange)
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, "0")
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    any
		text    string
	}{
		"no ranges": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, contents) },
			new(*UnsupportedError), "does not answer requests for ranges: serve the file with a server that does"},
		"weak": {func(w http.ResponseWriter, _ *http.Request) { part(w, `W/"v1"`, "bytes 0-0/36") }, new(*UnsupportedError),
			`its ETag "W/\"v1\"" is weak`},
		"no ETag": {func(w http.ResponseWriter, _ *http.Request) { part(w, "", "bytes 0-0/36") }, new(*UnsupportedError),
			"the server sends no ETag"},
		"bare ETag": {func(w http.ResponseWriter, _ *http.Request) { part(w, "v1", "bytes 0-0/36") }, new(*AnswerError),
			`the ETag "v1"`},
		"long ETag": {func(w http.ResponseWriter, _ *http.Request) {
			part(w, `"`+strings.Repeat("x", 1023)+`"`, "bytes 0-0/36")
		}, new(*AnswerError), "the ETag"},
		"no size": {func(w http.ResponseWriter, _ *http.Request) { part(w, `"v1"`, "bytes 0-0/*") }, new(*AnswerError),
			"does not say the size"},
		"no range": {func(w http.ResponseWriter, _ *http.Request) { part(w, `"v1"`, "") }, new(*AnswerError),
			"does not say the size"},
		"another range": {func(w http.ResponseWriter, _ *http.Request) { part(w, `"v1"`, "bytes 1-1/36") },
			new(*AnswerError), "bytes 0+1 were asked for, bytes 1+1 came"},
		"absent": {http.NotFound, new(*NotFoundError), "does not exist"},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
			new(*ForbiddenError), "access refused (status 403)"},
		"login": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			new(*ForbiddenError), "access refused (status 401)"},
		"busy": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		}, new(*ThrottledError), "and to wait 3s"},
		"teapot": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, new(*AnswerError),
			"status 418"},
		"circle": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
			new(*AnswerError), "more than 5 redirects"},
		"no first byte": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes */36")
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		}, new(*AnswerError), "no first byte and is not empty"},
	} {
		url := serve(t, c.handler)
		_, err := newWeb(t, nil).Open(context.Background(), ParseLocation(url+"?sig=secret"), Identity{})
		require.Error(t, err, name)
		assert.ErrorAs(t, err, c.want, name)
		assert.ErrorContains(t, err, c.text, name)
		assert.ErrorContains(t, err, "/data/day_0.parquet", name)
		assert.NotContains(t, err.Error(), "secret", name)
	}
}

// TestWebOpensAnEmptyObject checks that an empty object, which has no range, is opened with size 0.
func TestWebOpensAnEmptyObject(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", "bytes */0")
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
	})
	src, err := newWeb(t, nil).Open(context.Background(), ParseLocation(url), Identity{})
	require.NoError(t, err)
	assert.Zero(t, src.Size())
}

// TestWebFollowsRedirects: five redirects are followed, and the object keeps the name of the first URL.
func TestWebFollowsRedirects(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hops, _ := strconv.Atoi(r.URL.Query().Get("hops"))
		if hops < 5 {
			http.Redirect(w, r, fmt.Sprintf("%s?hops=%d", r.URL.Path, hops+1), http.StatusTemporaryRedirect)
			return
		}
		honest(w, r)
	})
	src, err := newWeb(t, nil).Open(context.Background(), ParseLocation(url), Identity{})
	require.NoError(t, err)
	assert.Equal(t, url, src.Name())
	b := make([]byte, 3)
	_, err = src.ReadAt(context.Background(), b, 1)
	require.NoError(t, err)
	assert.Equal(t, "123", string(b))
}

// TestARedirectTellsNothing: the host that a redirect leads to gets nothing of the URL that led there, in no header.
func TestARedirectTellsNothing(t *testing.T) {
	var asked atomic.Int64
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		for name, values := range r.Header {
			assert.NotContains(t, strings.Join(values, " "), "secret", name)
		}
		assert.Empty(t, r.Referer())
		honest(w, r)
	})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target, http.StatusTemporaryRedirect)
	})
	src, err := newWeb(t, nil).Open(t.Context(), ParseLocation(strings.Replace(url, "://", "://reader:secret@", 1)+
		"?X-Amz-Signature=secret"), Identity{})
	require.NoError(t, err)
	b := make([]byte, 3)
	_, err = src.ReadAt(t.Context(), b, 1)
	require.NoError(t, err)
	assert.Equal(t, int64(2), asked.Load())
}

// TestWebVerifiesServers checks that a server of an unknown authority is refused, with a hint, and that a redirect from
// https to http is refused.
func TestWebVerifiesServers(t *testing.T) {
	ctx := context.Background()
	plain := serve(t, honest)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, plain, http.StatusFound)
			return
		}
		honest(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the server logs that the client refuses it
	server.StartTLS()
	defer server.Close()
	_, err := newWeb(t, nil).Open(ctx, ParseLocation(server.URL+"/x"), Identity{})
	require.ErrorContains(t, err, "--source-ca")
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	src, err := newWeb(t, roots).Open(ctx, ParseLocation(server.URL+"/x"), Identity{})
	require.NoError(t, err)
	assert.EqualValues(t, len(contents), src.Size())
	var answer *AnswerError
	_, err = newWeb(t, roots).Open(ctx, ParseLocation(server.URL+"/away"), Identity{})
	require.ErrorAs(t, err, &answer)
	assert.ErrorContains(t, err, "not encrypted")
}

// TestWebDemandsWhatWasPinned: an object whose identity is not the pinned one is a ChangedError with both identities.
func TestWebDemandsWhatWasPinned(t *testing.T) {
	ctx := context.Background()
	url := serve(t, honest)
	web := newWeb(t, nil)
	pinned := Identity{Kind: ByETag, Value: `"v1"`, Size: int64(len(contents))}
	_, err := web.Open(ctx, ParseLocation(url), pinned)
	require.NoError(t, err)
	for _, other := range []Identity{
		{Kind: ByETag, Value: `"v0"`, Size: pinned.Size}, {Kind: ByETag, Value: `"v1"`, Size: 7},
		{Kind: ByContent, Value: "x"},
	} {
		_, err = web.Open(ctx, ParseLocation(url), other)
		var changed *ChangedError
		require.ErrorAs(t, err, &changed)
		assert.Equal(t, other, changed.Pinned)
		assert.Equal(t, pinned, changed.Found)
	}
}

// TestHostileServers: each wrong answer of the table to a request for a range is an error of its type, which names the
// object; the read returns no bytes.
func TestHostileServers(t *testing.T) {
	type answer = func(w http.ResponseWriter, r *http.Request)
	part := func(contentRange, body string) answer {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"v1"`)
			w.Header().Set("Content-Range", contentRange)
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, body)
		}
	}
	status := func(code int, header ...string) answer {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	hijack := func(raw string) answer {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, raw)
			_ = conn.(*net.TCPConn).SetLinger(0) // a reset, not an end
			_ = conn.Close()
		}
	}
	const head = "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes 10-13/36\r\n"
	for name, c := range map[string]struct {
		answer answer // to the request for bytes 10 to 13
		want   any
		text   string
	}{
		"short":  {hijack(head + "Content-Length: 4\r\n\r\nab"), new(*TruncatedError), "the answer ended after 2 bytes"},
		"reset":  {hijack(""), new(*UnreachableError), "cannot be reached"},
		"chunks": {part("bytes 10-13/36", "ab"), new(*TruncatedError), "the answer ended after 2 bytes"},
		"longer": {func(w http.ResponseWriter, r *http.Request) {
			part("bytes 10-13/36", "")(w, r)
			for range 1000 {
				if _, err := io.WriteString(w, strings.Repeat("x", 10_000)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		}, new(*TruncatedError), "the answer is longer than that"},
		"lies about the range": {part("bytes 11-14/36", "bcde"), new(*AnswerError), "bytes 11+4 came"},
		"less than asked":      {part("bytes 10-12/36", "abc"), new(*AnswerError), "bytes 10+3 came"},
		"another size":         {part("bytes 10-13/37", "abcd"), new(*AnswerError), "37 bytes by this answer"},
		"nonsense":             {part("bytes 10-13/x", "abcd"), new(*AnswerError), "Content-Range"},
		"no range": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"v1"`)
			w.WriteHeader(http.StatusPartialContent)
		}, new(*AnswerError), "Content-Range"},
		"wrong length": {hijack(head + "Content-Length: 5\r\n\r\nabcde"), new(*AnswerError), "Content-Length"},
		"compressed": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			part("bytes 10-13/36", "abcd")(w, r)
		}, new(*AnswerError), "encoding"},
		"whole":         {status(http.StatusOK, "ETag", `"v1"`), new(*AnswerError), "all came"},
		"whole changed": {status(http.StatusOK, "ETag", `"v2"`), new(*ChangedError), "pinned etag:36"},
		"precondition":  {status(http.StatusPreconditionFailed), new(*ChangedError), "something else now"},
		"shrank":        {status(416, "Content-Range", "bytes */9"), new(*ChangedError), ""},
		"no such range": {status(416), new(*AnswerError), "it has no bytes 10+4"},
		"ignores If-Match": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"v2"`)
			w.Header().Set("Content-Range", "bytes 10-13/40")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "abcd")
		}, new(*ChangedError), `found etag:40:"v2"`},
		"gone":      {status(http.StatusGone), new(*NotFoundError), ""},
		"throttled": {status(http.StatusServiceUnavailable, "Retry-After", "2"), new(*ThrottledError), "wait 2s"},
		"broken":    {status(http.StatusInternalServerError), new(*ThrottledError), "status 500"},
		"nothing":   {status(http.StatusNoContent), new(*AnswerError), "status 204"},
		"headers": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 2*maxHeaderBytes))
			part("bytes 10-13/36", "abcd")(w, r)
		}, new(*UnreachableError), "headers"},
	} {
		t.Run(name, func(t *testing.T) {
			leaks.Check(t)
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") == "bytes=0-0" {
					honest(w, r)
					return
				}
				assert.Equal(t, "bytes=10-13", r.Header.Get("Range"))
				assert.Equal(t, `"v1"`, r.Header.Get("If-Match"))
				c.answer(w, r)
			})
			src, err := newWeb(t, nil).Open(context.Background(), ParseLocation(url), Identity{})
			require.NoError(t, err)
			n, err := src.ReadAt(context.Background(), make([]byte, 4), 10)
			require.Error(t, err)
			assert.Zero(t, n)
			assert.ErrorAs(t, err, c.want, err.Error())
			assert.ErrorContains(t, err, c.text)
			assert.ErrorContains(t, err, url)
		})
	}
}

// TestUnreachable: an address at which no server listens is an UnreachableError without the URL's query. With a context
// that was cancelled, the error is the context's.
func TestUnreachable(t *testing.T) {
	leaks.Check(t)
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var unreachable *UnreachableError
	_, err := newWeb(t, nil).Open(context.Background(), ParseLocation(server.URL+"/x?secret"), Identity{})
	require.ErrorAs(t, err, &unreachable)
	assert.NotContains(t, err.Error(), "secret")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = newWeb(t, nil).Open(ctx, ParseLocation(server.URL+"/x"), Identity{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestWebLists: a URL without a pattern is a list of one object; a pattern is refused.
func TestWebLists(t *testing.T) {
	url := serve(t, honest)
	web := newWeb(t, nil)
	objects, err := web.List(context.Background(), ParseLocation(url+"?sig=*"))
	require.NoError(t, err)
	assert.Equal(t, []Object{{Location: ParseLocation(url + "?sig=*"), Size: int64(len(contents))}}, objects)
	for _, pattern := range []string{"http://h/day_*.parquet", "http://h/day_[0-9].parquet", "http://h/days/"} {
		var unsupported *UnsupportedError
		_, err = web.List(context.Background(), ParseLocation(pattern))
		require.ErrorAs(t, err, &unsupported)
		assert.ErrorContains(t, err, "name each file")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "60": time.Minute, "61": time.Minute, "9223372036854775807": time.Minute, "-1": 0,
		"1.5":  0,
		"soon": 0, "Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:04 GMT": 0,
		"Fri, 02 Jan 2030 03:04:04 GMT": time.Minute, "99999999999999999999": 0,
	} {
		assert.Equal(t, want, ParseRetryAfter(header, now), header)
	}
}

func TestContentRange(t *testing.T) {
	for header, want := range map[string]contentRange{
		"bytes 0-0/1":     {0, 0, 1},
		"Bytes 5-9/*":     {5, 9, -1},
		"bytes */0":       {-1, -1, 0},
		"bytes 0-9/10":    {0, 9, 10},
		"bytes 0-9/09999": {0, 9, 9999},
	} {
		got, ok := parseContentRange(header)
		assert.True(t, ok, header)
		assert.Equal(t, want, got, header)
	}
	for _, header := range []string{
		"", "bytes", "bytes ", "bytes 0-0", "bytes 1-0/5", "bytes 0-5/5", "bytes */*", "items 0-0/1", "bytes -1-0/1",
		"bytes 0-/1", "bytes 0-0/", "bytes 0-0/-1", "bytes +0-0/1", "bytes 0-9223372036854775808/*", "bytes  0-0/1",
	} {
		_, ok := parseContentRange(header)
		assert.False(t, ok, header)
	}
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-9/10")
	f.Add("bytes */0")
	f.Add("bytes 5-9223372036854775807/*")
	f.Fuzz(func(t *testing.T, header string) {
		r, ok := parseContentRange(header)
		if !ok {
			return
		}
		if r.first < 0 {
			require.GreaterOrEqual(t, r.total, int64(0))
			return
		}
		require.LessOrEqual(t, r.first, r.last)
		require.True(t, r.total < 0 || r.last < r.total)
		require.NoError(t, CheckPart("x", http.Header{"Content-Range": {header}}, r.first, r.last-r.first+1, max(r.total, 0)),
			"%q", header)
	})
}

// TestSequence: the bytes of a source come in order, also when answers fail for a time. The error of an object that
// changed is a ChangedError, and it stays.
func TestSequence(t *testing.T) {
	whole := strings.Repeat(contents, 100_000) // 3.6 MB, three reads
	var answers atomic.Int64
	var changes atomic.Bool
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if answers.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		if changes.Load() {
			w.Header().Set("ETag", `"v2"`)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(whole))
	})
	retry := Retry{Wait: func(context.Context, time.Duration) error { return nil }}
	src, err := newWeb(t, nil).Open(t.Context(), ParseLocation(url), Identity{})
	require.NoError(t, err)
	got, err := io.ReadAll(NewSequence(t.Context(), src, retry))
	require.NoError(t, err)
	assert.Equal(t, len(whole), len(got))
	assert.True(t, whole == string(got), "the same bytes")

	s := NewSequence(t.Context(), src, retry)
	_, err = io.ReadFull(s, make([]byte, 10))
	require.NoError(t, err)
	changes.Store(true)
	var changed *ChangedError
	for range 2 {
		_, err = io.ReadAll(s)
		require.ErrorAs(t, err, &changed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = NewSequence(ctx, src, retry).Read(make([]byte, 1))
	require.ErrorIs(t, err, context.Canceled)
}
