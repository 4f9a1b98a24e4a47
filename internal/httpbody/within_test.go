package httpbody

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How long tests wait for something that happens in another goroutine, and how often they look.
const (
	waitLong  = 30 * time.Second
	waitShort = time.Millisecond
)

// TestASlowBodyFails checks that the sender of a slow body gets an error, and that the connection ends.
func TestASlowBodyFails(t *testing.T) {
	failed := make(chan error, 1)
	srv := httptest.NewServer(Within(50*time.Millisecond,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			failed <- err
			_ = r.Body.Close() // as Connect does
			http.Error(w, "too late", http.StatusRequestTimeout)
		})))
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	assert.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
	said, err := io.ReadAll(c)
	require.NoError(t, err, "the connection is held on to")
	assert.Contains(t, string(said), "too late")
}

// TestWhatFollowsABodyMayTake: the deadline is the body's, not the handler's, and not of the connection's next request.
func TestWhatFollowsABodyMayTake(t *testing.T) {
	const most = 2 * time.Second // the machine is loaded
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewUnstartedServer(Within(most,
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b, err := io.ReadAll(r.Body)
					assert.NoError(t, err)
					if string(b) == "wait" {
						select {
						case <-r.Context().Done():
							t.Error(context.Cause(r.Context()))
						case <-time.After(most + 100*time.Millisecond):
						}
					}
					_, err = w.Write(b)
					assert.NoError(t, err)
				})))
			srv.EnableHTTP2 = http2
			srv.StartTLS()
			defer srv.Close()
			for _, said := range []string{"wait", strings.Repeat("long ", 1<<14), "", "again"} {
				resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader(said))
				require.NoError(t, err)
				assert.Equal(t, http2, resp.ProtoMajor == 2)
				b, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				assert.Equal(t, said, string(b))
			}
		})
	}
}

// TestOfAConnectionThatRests the deadline of the request before says nothing.
func TestOfAConnectionThatRests(t *testing.T) {
	const most = 500 * time.Millisecond
	srv := httptest.NewServer(Within(most, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		assert.NoError(t, err)
	})))
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	in := bufio.NewReader(c)
	for range 2 {
		_, err = fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		require.NoError(t, err)
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		time.Sleep(most + 100*time.Millisecond)
	}
}

// TestWithoutAConnection checks that a request that is handed on in process has no deadline.
func TestWithoutAConnection(t *testing.T) {
	w := httptest.NewRecorder()
	h := Within(time.Nanosecond, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("said")))
	assert.Equal(t, "said", w.Body.String())
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
}

// halfClosing notes whether a connection was closed for writing before it was closed.
type halfClosing struct {
	*net.TCPConn
	ends chan<- string
}

func (c halfClosing) CloseWrite() error {
	c.ends <- "CloseWrite"
	return c.TCPConn.CloseWrite()
}

func (c halfClosing) Close() error {
	c.ends <- "Close"
	return c.TCPConn.Close()
}

type halfClosingListener struct {
	net.Listener
	ends chan<- string
}

func (l halfClosingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return halfClosing{c.(*net.TCPConn), l.ends}, nil
}

// TestARefusalBeforeTheBodyIsRead: the server ends its side of the connection first and closes it later, so that a
// caller who is still sending reads the refusal. Closed at once, with bytes unread, the connection is reset, and the
// refusal may be lost.
func TestARefusalBeforeTheBodyIsRead(t *testing.T) {
	ends := make(chan string, 8)
	srv := httptest.NewUnstartedServer(Within(Time, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	})))
	srv.Listener = halfClosingListener{srv.Listener, ends}
	srv.Start()
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{", 64<<20)
	require.NoError(t, err)
	require.Equal(t, "CloseWrite", <-ends)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(waitLong)))
	said, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Contains(t, string(said), "413")
	assert.Equal(t, "Close", <-ends)
}
