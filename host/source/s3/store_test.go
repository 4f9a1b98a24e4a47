package s3_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/source/s3"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/internal/objectserver"
)

// contents is the bytes of the object of these tests.
const contents = "0123456789abcdefghijklmnopqrstuvwxyz"

// object is the URI of the object of these tests.
const object = "s3://rows/days/day_0.parquet"

// clearEnvironment clears the variables and the home folder from which credentials would be read.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL",
		"AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ACCESS_KEY",
		"AWS_SECRET_KEY", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_CONFIG_FILE", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "")
}

// newStore returns a store at an endpoint, whose connections end with the test.
func newStore(t *testing.T, endpoint string) *s3.Store {
	t.Helper()
	transport := source.NewTransport(nil)
	t.Cleanup(transport.CloseIdleConnections)
	store, err := s3.New(s3.Options{Endpoint: endpoint, Transport: transport})
	require.NoError(t, err)
	return store
}

// newServer serves the object.
func newServer(t *testing.T) *objectserver.Server {
	t.Helper()
	clearEnvironment(t)
	server := objectserver.New(t)
	server.Put(strings.TrimPrefix(object, "s3://"), []byte(contents))
	return server
}

func TestStoreReads(t *testing.T) {
	ctx := context.Background()
	server := newServer(t)
	src, err := newStore(t, server.URL).Open(ctx, source.ParseLocation(object), source.Identity{})
	require.NoError(t, err)
	assert.Equal(t, object, src.Name())
	etag := objectserver.ETag([]byte(contents))
	assert.Equal(t, source.Identity{Kind: source.ByETag, Value: etag, Size: 36}, src.Identity())
	for _, c := range []struct {
		off  int64
		n    int
		want string
		err  error
	}{{0, 1, "0", nil}, {0, 36, contents, nil}, {30, 7, "uvwxyz", io.EOF}, {36, 1, "", io.EOF}, {3, 0, "", nil}} {
		b := make([]byte, c.n)
		n, err := src.ReadAt(ctx, b, c.off)
		assert.Equal(t, c.want, string(b[:n]))
		assert.Equal(t, c.err, err)
	}
	// Some stores keep the encoding of the upload in the metadata of an object.
	server.SetBefore(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Encoding", "aws-chunked")
		return false
	})
	_, err = src.ReadAt(ctx, make([]byte, 3), 3)
	require.NoError(t, err)
	require.NoError(t, src.Close())
}

// TestCredentials: without credentials, and with those of another key, access is refused; with those of the environment
// the object is read. No error holds the secret.
func TestCredentials(t *testing.T) {
	ctx := context.Background()
	server := newServer(t)
	server.AccessKey = "AKIDEXAMPLE"
	var forbidden *source.ForbiddenError
	_, err := newStore(t, server.URL).Open(ctx, source.ParseLocation(object), source.Identity{})
	require.ErrorAs(t, err, &forbidden)
	assert.ErrorContains(t, err, "give credentials")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "verysecret")
	src, err := newStore(t, server.URL).Open(ctx, source.ParseLocation(object), source.Identity{})
	require.NoError(t, err)
	_, err = src.ReadAt(ctx, make([]byte, 3), 3)
	require.NoError(t, err)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDOTHER")
	_, err = newStore(t, server.URL).Open(ctx, source.ParseLocation(object), source.Identity{})
	require.ErrorAs(t, err, &forbidden)
	assert.NotContains(t, err.Error(), "verysecret")
}

// TestARedirectIsNotFollowed: the host that a store redirects to gets no request, and so nothing of the credentials,
// the signature or the names, in no header. The error of each call names the status.
func TestARedirectIsNotFollowed(t *testing.T) {
	server := newServer(t)
	server.AccessKey = "AKIDEXAMPLE"
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "verysecret")
	t.Setenv("AWS_SESSION_TOKEN", "secrettoken")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s came, with %v", r.Method, r.URL, r.Header)
	}))
	t.Cleanup(elsewhere.Close)
	store := newStore(t, server.URL)
	src, err := store.Open(t.Context(), source.ParseLocation(object), source.Identity{})
	require.NoError(t, err)
	calls := map[string]func() error{
		"open": func() error {
			_, err := store.Open(t.Context(), source.ParseLocation(object), source.Identity{})
			return err
		},
		"read": func() error {
			_, err := src.ReadAt(t.Context(), make([]byte, 3), 3)
			return err
		},
		"list": func() error {
			_, err := store.List(t.Context(), source.ParseLocation("s3://rows/days/"))
			return err
		},
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		server.SetBefore(func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.URL+r.URL.RequestURI(), status)
			return true
		})
		for name, call := range calls {
			require.ErrorContains(t, call(), strconv.Itoa(status), name)
		}
	}
}

// TestEndpoint: the environment names the store, AWS_ENDPOINT_URL_S3 goes before AWS_ENDPOINT_URL, an option goes
// before both, and a text that is not an endpoint is refused.
func TestEndpoint(t *testing.T) {
	server := newServer(t)
	open := func(env map[string]string, endpoint string) error {
		store, err := s3.New(s3.Options{Endpoint: endpoint, Getenv: func(name string) string { return env[name] }})
		if err == nil {
			_, err = store.Open(context.Background(), source.ParseLocation(object), source.Identity{})
		}
		return err
	}
	require.NoError(t, open(map[string]string{"AWS_ENDPOINT_URL": server.URL}, ""))
	const nobody = "http://127.0.0.1:1"
	require.NoError(t, open(map[string]string{"AWS_ENDPOINT_URL": nobody, "AWS_ENDPOINT_URL_S3": server.URL}, ""))
	require.NoError(t, open(map[string]string{"AWS_ENDPOINT_URL": nobody}, server.URL))
	for _, endpoint := range []string{
		"127.0.0.1:9000", "ftp://h", "http://", "http://h/path", "http://h?x", "http://u:secret@h", "http://h:x",
	} {
		err := open(nil, endpoint)
		require.ErrorContains(t, err, "is not an endpoint of S3", endpoint)
		assert.NotContains(t, err.Error(), "secret")
	}
}

// TestPins: an object without versions that was written again is a ChangedError; an object's pinned version stays
// readable after the object was written again.
func TestPins(t *testing.T) {
	ctx := context.Background()
	server := newServer(t)
	store := newStore(t, server.URL)
	src, err := store.Open(ctx, source.ParseLocation(object), source.Identity{})
	require.NoError(t, err)
	_, err = store.Open(ctx, source.ParseLocation(object), src.Identity())
	require.NoError(t, err)
	server.Put("rows/days/day_0.parquet", []byte(strings.ToUpper(contents)))
	var changed *source.ChangedError
	_, err = src.ReadAt(ctx, make([]byte, 3), 12)
	require.ErrorAs(t, err, &changed)
	_, err = store.Open(ctx, source.ParseLocation(object), src.Identity())
	require.ErrorAs(t, err, &changed)
	assert.Equal(t, src.Identity(), changed.Pinned)
	assert.NotEqual(t, src.Identity(), changed.Found)

	server.PutVersion("rows/days/day_0.parquet", "v-1", []byte(contents))
	src, err = store.Open(ctx, source.ParseLocation(object), source.Identity{})
	require.NoError(t, err)
	assert.Equal(t, source.Identity{Kind: source.ByVersion, Value: "v-1", Size: 36}, src.Identity())
	server.PutVersion("rows/days/day_0.parquet", "v-2", []byte("another"))
	b := make([]byte, 3)
	_, err = src.ReadAt(ctx, b, 12)
	require.NoError(t, err)
	assert.Equal(t, "cde", string(b))
	_, err = store.Open(ctx, source.ParseLocation(object), src.Identity())
	require.NoError(t, err, "the old version is still there")
}

// TestLists: patterns match over folders and over several pages, in the order of names; a pattern or a name that
// matches nothing is a NotFoundError.
func TestLists(t *testing.T) {
	ctx := context.Background()
	server := newServer(t)
	store := newStore(t, server.URL)
	var days []string
	for i := range 2100 {
		name := fmt.Sprintf("days/many/day_%04d.parquet", i)
		server.Put("rows/"+name, make([]byte, i))
		days = append(days, "s3://rows/"+name)
	}
	for _, name := range []string{"days/_SUCCESS", "days/a b+c%/x.parquet", "months/1/x.parquet", "months/2/x.parquet",
		"months/2/y/x.parquet", "top.parquet", "months/2/"} {
		server.Put("rows/"+name, []byte{1})
	}
	for pattern, want := range map[string][]string{
		"many/day_*.parquet":             nil,
		"days/many/day_*":                days,
		"days/many/":                     days,
		"days/many/day_20[0-4]?.parquet": days[2000:2050],
		"days/day_0.parquet":             {object},
		"days/*/x.parquet":               {"s3://rows/days/a b+c%/x.parquet"},
		"months/*/*":                     {"s3://rows/months/1/x.parquet", "s3://rows/months/2/x.parquet"},
		"*/[0-9]/*.parquet":              {"s3://rows/months/1/x.parquet", "s3://rows/months/2/x.parquet"},
		"":                               {"s3://rows/top.parquet"},
		"t*":                             {"s3://rows/top.parquet"},
		"days/none*":                     nil,
		"days/none":                      nil,
	} {
		objects, err := store.List(ctx, source.ParseLocation("s3://rows/"+pattern))
		var missing *source.NotFoundError
		if want == nil {
			require.ErrorAs(t, err, &missing, pattern)
			continue
		}
		require.NoError(t, err, pattern)
		var got []string
		for _, o := range objects {
			got = append(got, o.Location.Name())
		}
		assert.Equal(t, want, got, pattern)
	}
	objects, err := store.List(ctx, source.ParseLocation("s3://rows/days/many/day_0007*"))
	require.NoError(t, err)
	assert.Equal(t, []source.Object{{Location: source.ParseLocation(days[7]), Size: 7}}, objects)
	_, err = store.List(ctx, source.ParseLocation("s3://rows/days/["))
	require.Error(t, err)
}

// TestRefuses: a URI that names no object is an error that no other attempt can mend.
func TestRefuses(t *testing.T) {
	store := newStore(t, newServer(t).URL)
	for _, uri := range []string{
		"s3://rows", "s3://rows/", "s3:///x", "http://rows/x", "s3://A_/x", "s3://rows/" + strings.Repeat("x", 1200),
		"s3://rows/days/",
	} {
		_, err := store.Open(context.Background(), source.ParseLocation(uri), source.Identity{})
		require.Error(t, err, uri)
		_, temporary := source.Temporary(err)
		assert.False(t, temporary, "%s: %v", uri, err)
	}
}

// TestHostileStores: each wrong answer of the table is an error of its type, which names the object; the read returns
// no bytes, and the library makes no further attempts.
func TestHostileStores(t *testing.T) {
	refuse := func(status int, code string, header ...string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			objectserver.Refuse(w, status, code, "a message")
		}
	}
	part := func(etag, contentRange, length, body string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", etag)
			w.Header().Set("Content-Range", contentRange)
			w.Header().Set("Content-Length", length)
			w.Header().Set("Last-Modified", time.Unix(0, 0).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, body)
		}
	}
	etag := objectserver.ETag([]byte(contents))
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   any
		text   string
	}{
		"slow down":          {refuse(503, "SlowDown", "Retry-After", "4"), new(*source.ThrottledError), "wait 4s"},
		"slow, other status": {refuse(400, "RequestTimeout"), new(*source.ThrottledError), "RequestTimeout"},
		"busy":               {refuse(429, "TooManyRequests"), new(*source.ThrottledError), "status 429"},
		"broken":             {refuse(500, "InternalError"), new(*source.ThrottledError), "InternalError"},
		"expired":            {refuse(403, "ExpiredToken"), new(*source.ForbiddenError), "ExpiredToken"},
		"gone":               {refuse(404, "NoSuchKey"), new(*source.NotFoundError), "NoSuchKey"},
		"changed":            {refuse(412, "PreconditionFailed"), new(*source.ChangedError), "pinned etag:36"},
		"shrank": {refuse(416, "InvalidRange", "Content-Range", "bytes */3"),
			new(*source.ChangedError), ""},
		"no range": {refuse(416, "InvalidRange", "Content-Range", "bytes */36"),
			new(*source.AnswerError), "no bytes"},
		"nonsense":     {refuse(418, "Teapot"), new(*source.AnswerError), "status 418"},
		"other range":  {part(etag, "bytes 11-14/36", "4", "bcde"), new(*source.AnswerError), "bytes 11+4 came"},
		"other size":   {part(etag, "bytes 10-13/37", "4", "abcd"), new(*source.AnswerError), "37 bytes"},
		"other object": {part(`"x"`, "bytes 10-13/36", "4", "abcd"), new(*source.ChangedError), ""},
		"compressed": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			part(etag, "bytes 10-13/36", "4", "abcd")(w, r)
		}, new(*source.AnswerError), "encoding"},
		"truncated": {func(w http.ResponseWriter, r *http.Request) {
			part(etag, "bytes 10-13/36", "4", "ab")(w, r)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, new(*source.TruncatedError), "ended after 2 bytes"},
		"longer": {part(etag, "bytes 10-13/36", "", strings.Repeat("x", 100_000)), new(*source.TruncatedError), "longer"},
		"whole": {func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			w.Header().Set("ETag", etag)
			http.ServeContent(w, r, "", time.Unix(0, 1), strings.NewReader(contents))
		}, new(*source.AnswerError), "status 200 came"},
		"reset": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			new(*source.UnreachableError), ""},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			for {
				if _, err := io.WriteString(w, strings.Repeat("<x>", 10_000)); err != nil {
					return
				}
			}
		}, new(*source.ThrottledError), "status 502"},
	} {
		t.Run(name, func(t *testing.T) {
			leaks.Check(t)
			server := newServer(t)
			server.SetBefore(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodHead {
					return false
				}
				assert.Equal(t, "bytes=10-13", r.Header.Get("Range"))
				assert.Equal(t, etag, r.Header.Get("If-Match"))
				c.answer(w, r)
				return true
			})
			src, err := newStore(t, server.URL).Open(context.Background(), source.ParseLocation(object), source.Identity{})
			require.NoError(t, err)
			n, err := src.ReadAt(context.Background(), make([]byte, 4), 10)
			require.Error(t, err)
			assert.Zero(t, n)
			assert.ErrorAs(t, err, c.want, "%v", err)
			assert.ErrorContains(t, err, c.text)
			assert.ErrorContains(t, err, object)
			count, _ := server.Requests()
			// Package net/http repeats a request whose connection was closed before any byte of the answer came.
			assert.LessOrEqual(t, count, 3, "the library tried again by itself")
		})
	}
}

// TestHostileListings: a listing that does not end, holds other keys than the requested ones, or is not a document is
// an error of its type.
func TestHostileListings(t *testing.T) {
	page := func(keys string, token string) string {
		return `<ListBucketResult><Name>rows</Name><IsTruncated>` + strconv.FormatBool(token != "") +
			`</IsTruncated>` + keys + `<NextContinuationToken>` + token + `</NextContinuationToken></ListBucketResult>`
	}
	key := func(name string, size int) string {
		return fmt.Sprintf(`<Contents><Key>%s</Key><Size>%d</Size></Contents>`, name, size)
	}
	for name, c := range map[string]struct {
		answer func(w io.Writer)
		want   any
		text   string
	}{
		"the same page again": {func(w io.Writer) { _, _ = io.WriteString(w, page("", "x")) }, new(*source.AnswerError),
			"too many requests"},
		"another folder": {func(w io.Writer) { _, _ = io.WriteString(w, page(key("nights/1", 1), "")) },
			new(*source.AnswerError), "nights/1"},
		"a deeper key": {func(w io.Writer) { _, _ = io.WriteString(w, page(key("days/a/b", 1), "")) },
			new(*source.AnswerError), "days/a/b"},
		"no document": {func(w io.Writer) { _, _ = io.WriteString(w, "<ListBucketResult><Contents></x>") },
			new(*source.AnswerError), ""},
		"cut": {func(w io.Writer) { _, _ = io.WriteString(w, "<ListBucketResult><Contents>") }, new(*source.AnswerError),
			""},
		"too many": {func(w io.Writer) {
			_, _ = io.WriteString(w, page(strings.Repeat(key("days/day_1", 1), source.MaxListed+1), ""))
		}, new(*source.UnsupportedError), "name fewer at once"},
		"endless": {func(w io.Writer) {
			_, err := io.WriteString(w, "<ListBucketResult><Name>")
			for err == nil {
				_, err = io.WriteString(w, strings.Repeat("x", 100_000))
			}
		}, new(*source.AnswerError), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			leaks.Check(t)
			clearEnvironment(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
			defer server.Close()
			_, err := newStore(t, server.URL).List(context.Background(), source.ParseLocation("s3://rows/days/day_*"))
			require.Error(t, err)
			assert.ErrorAs(t, err, c.want, "%v", err)
			assert.ErrorContains(t, err, c.text)
		})
	}
}

// TestUnreachable: an address at which no server listens is an UnreachableError. With a context that was cancelled, the
// error is the context's.
func TestUnreachable(t *testing.T) {
	clearEnvironment(t)
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var unreachable *source.UnreachableError
	store := newStore(t, server.URL)
	_, err := store.Open(context.Background(), source.ParseLocation(object), source.Identity{})
	require.ErrorAs(t, err, &unreachable)
	_, err = store.List(context.Background(), source.ParseLocation("s3://rows/*"))
	require.ErrorAs(t, err, &unreachable)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = store.Open(ctx, source.ParseLocation(object), source.Identity{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = store.List(ctx, source.ParseLocation("s3://rows/*"))
	require.ErrorIs(t, err, context.Canceled)
}
